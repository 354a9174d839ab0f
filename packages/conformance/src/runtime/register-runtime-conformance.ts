import type { TestFunction } from '../store/register-store-conformance.ts';
import { missingRuntimeRequirements, type RuntimeHarness } from './harness.ts';
import { runRuntimeCase } from './run-runtime-case.ts';
import { runtimeCases } from './runtime-cases.ts';

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`; a case that needs what the runtime or the harness does not offer is
 * skipped and its title says why. Every case opens an engine of its own, so they may run at the same time.
 */
export function registerRuntimeConformance(test: TestFunction, harness: RuntimeHarness): void {
  for (const runtimeCase of runtimeCases) {
    const title = `${harness.name}: ${runtimeCase.id}: ${runtimeCase.title}`;
    const missing = missingRuntimeRequirements(harness, runtimeCase.requires);
    if (missing.length > 0) {
      test.skip(`${title} [not run, there is no ${missing.join(', ')}]`, async () => {});
      continue;
    }
    test(title, async (t) => {
      t.timeout(60_000);
      await runRuntimeCase(harness, runtimeCase, (message) => t.log(message));
      t.pass();
    });
  }
}
