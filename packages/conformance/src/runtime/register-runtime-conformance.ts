import type { TestFunction } from '../store/register-store-conformance.ts';
import { missingRuntimeRequirements, type RuntimeHarness } from './harness.ts';
import { runRuntimeCase } from './run-runtime-case.ts';
import { runtimeCases } from './runtime-cases.ts';

const caseTimeoutMs = 60_000;
const waitForTurnMs = 600_000;

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`; a case that needs what the runtime or the harness
 * does not offer is skipped and its title says why. Every case opens an engine of its own, so they may run at the same
 * time.
 */
export function registerRuntimeConformance(test: TestFunction, harness: RuntimeHarness): void {
  const inTurn = slots(harness.concurrency ?? Number.POSITIVE_INFINITY);
  for (const runtimeCase of runtimeCases) {
    const title = `${harness.name}: ${runtimeCase.id}: ${runtimeCase.title}`;
    const missing = missingRuntimeRequirements(harness, runtimeCase.requires);
    if (missing.length > 0) {
      test.skip(`${title} [not run, there is no ${missing.join(', ')}]`, async () => {});
      continue;
    }
    test(title, async (t) => {
      t.timeout(waitForTurnMs);
      await inTurn(async () => {
        t.timeout(caseTimeoutMs);
        await runRuntimeCase(harness, runtimeCase, (message) => t.log(message));
      });
      t.pass();
    });
  }
}

/** Runs at most so many tasks at once, in the order in which they came. */
function slots(count: number): (task: () => Promise<void>) => Promise<void> {
  const waiting: (() => void)[] = [];
  let free = count;
  return async (task) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
