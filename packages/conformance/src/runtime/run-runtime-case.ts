import { RuntimeCaseContext } from './case-context.ts';
import type { RuntimeHarness } from './harness.ts';
import type { RuntimeCase } from './runtime-case.ts';

/**
 * Runs one case on an engine of its own. A failure carries the case's id; what is left on the machine is a failure too.
 */
export async function runRuntimeCase(
  harness: RuntimeHarness,
  runtimeCase: RuntimeCase,
  log: (message: string) => void = () => {},
): Promise<void> {
  const context = new RuntimeCaseContext(harness, await harness.open(), log);
  let failure: unknown;
  // Clocks of runtimes do not hold a process, and somebody does wait here.
  const hold = setInterval(() => {}, 1000);
  try {
    await runtimeCase.run(context);
  } catch (error) {
    failure = error;
  }
  clearInterval(hold);
  try {
    await context.opened.dispose();
  } catch (error) {
    failure ??= error;
  }
  if (failure === undefined) return;
  const message = failure instanceof Error ? failure.message : String(failure);
  throw new Error(`${runtimeCase.id}: ${message}`, { cause: failure });
}
