import type { Clock } from '@keelson/core';

/** Waits, or returns early when `signal` aborts. */
function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const cancel = clock.after(ms, () => resolve());
    signal.addEventListener('abort', () => {
      cancel();
      resolve();
    });
  });
}

/** Records a CPU profile of this process for a time, in the format of `.cpuprofile` files. */
export async function recordCpuProfile(clock: Clock, ms: number, signal: AbortSignal): Promise<object> {
  // Loaded on demand, because it is rarely used.
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await wait(clock, ms, signal);
    return (await session.post('Profiler.stop')).profile;
  } finally {
    session.disconnect();
  }
}
