/** Waits until the condition holds, at most thirty seconds of real time. */
export async function eventually(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('the condition was never met');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
