/** Pauses between probes grow up to this time. */
const longestPauseMs = 50;

/**
 * Waits until `probe` returns a value other than undefined and false, and returns the value. An exception counts as
 * false; after the time limit the last one is thrown.
 */
export async function eventually<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let failure: unknown = new Error('the condition was never met');
  for (let pauseMs = 2; ; pauseMs = Math.min(longestPauseMs, pauseMs * 1.5)) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= deadline) throw new Error(`not met within ${timeoutMs} ms`, { cause: failure });
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
