/**
 * True when a promise is fulfilled within the time, false when the time has passed; rejects when the promise rejects.
 * The operation behind the promise is not aborted.
 */
export async function settledWithin(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    // Not injected: the deadline of a shutdown, which the clock of a test would stop.
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
