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

/** Records for a while which functions of this process use the CPU; the result is what `.cpuprofile` files hold. */
export async function recordCpuProfile(clock: Clock, ms: number, signal: AbortSignal): Promise<object> {
  // Loaded late: hardly anybody asks.
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
