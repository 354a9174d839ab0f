import type { TestFunction } from '../store/register-store-conformance.ts';
import { clientCases } from './client-cases.ts';
import type { ClientHarness } from './harness.ts';
import { runClientCase } from './run-client-case.ts';

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`; a case that needs what the harness does not offer is
 * skipped and its title says why. Cases open clients of their own, so they may run one after the other or at the same
 * time.
 */
export function registerClientConformance(test: TestFunction, harness: ClientHarness): void {
  for (const clientCase of clientCases) {
    const title = `${harness.name}: ${clientCase.id}: ${clientCase.title}`;
    const missing = (clientCase.requires ?? []).filter((need) => !harness.offers.includes(need));
    if (missing.length > 0) {
      test.skip(`${title} [not run, the harness has no ${missing.join(', ')}]`, async () => {});
      continue;
    }
    test(title, async (t) => {
      t.timeout(60_000);
      await runClientCase(harness, clientCase);
      t.pass();
    });
  }
}
