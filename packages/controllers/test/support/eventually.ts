const pollMs = 5;

/**
 * Polls `probe` until it returns a value other than undefined and false, and returns that value. An exception counts as
 * false. Fails after thirty seconds.
 */
export async function eventually<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let failure: unknown = new Error('the condition was never met');
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= deadline) throw new Error(`not met within ${timeoutMs} ms`, { cause: failure });
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
