import { lackingForPodman, Podman } from '@keelson/test-support';
import test, { type ExecutionContext, type ImplementationFn } from 'ava';
import type { EngineRuntimeOptions } from '../../src/index.ts';
import { type OpenedPodman, openEngine } from './engine-harness.ts';

const lacking = lackingForPodman();
/** One for all tests of a process. */
export const podman = lacking.length === 0 ? await Podman.open() : undefined;

export type EngineTest = (t: ExecutionContext, opened: OpenedPodman) => Promise<void>;

/** A test with an engine of its own on this Podman; skipped where Podman cannot run. */
export function engineTest(title: string, run: EngineTest, change: Partial<EngineRuntimeOptions> = {}): void {
  if (podman === undefined) {
    test.skip(`${title} [not run, there is no ${lacking.join(', ')}]`, () => {});
    return;
  }
  const implementation: ImplementationFn<[]> = async (t) => {
    t.timeout(100_000);
    const opened = await openEngine(podman, change);
    // Timers of runtimes are unreferenced, and this wait has to keep the process alive.
    const hold = setInterval(() => {}, 1000);
    t.teardown(async () => {
      await opened.dispose();
      clearInterval(hold);
    });
    await run(t, opened);
  };
  test.serial(title, implementation);
}

/** Number of test files of this process whose tests have not all ended. */
let files = 0;

/** To be called by each test file. The last one closes Podman when its tests have ended. */
export function closePodmanAfterwards(): void {
  files += 1;
  test.after.always(async () => {
    files -= 1;
    if (files === 0) await podman?.[Symbol.asyncDispose]();
  });
}
