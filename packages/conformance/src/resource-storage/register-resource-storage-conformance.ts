import { randomInt } from 'node:crypto';
import type { OpenedStore } from '../store/harness.ts';
import type { TestFunction } from '../store/register-store-conformance.ts';
import { missingResourceStorageRequirements, type ResourceStorageHarness } from './harness.ts';
import { resourceStorageCases } from './resource-storage-cases.ts';
import { runResourceStorageCase } from './run-resource-storage-case.ts';

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`; a case that the harness cannot run is skipped and
 * its title says why. Random cases use `KEELSON_SEED` when it is set.
 */
export function registerResourceStorageConformance<O extends OpenedStore>(
  test: TestFunction,
  harness: ResourceStorageHarness<O>,
): void {
  const given = process.env['KEELSON_SEED'];
  for (const resourceCase of resourceStorageCases) {
    const title = `${harness.name}: ${resourceCase.id}: ${resourceCase.title}`;
    const missing = missingResourceStorageRequirements(harness as unknown as ResourceStorageHarness, resourceCase);
    if (missing.length > 0) {
      test.skip(`${title} [not run, the harness has no ${missing.join(', ')}]`, async () => {});
      continue;
    }
    test(title, async (t) => {
      t.timeout(60_000);
      const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
      await runResourceStorageCase(harness, resourceCase, { seed, log: (message) => t.log(message) });
      t.pass();
    });
  }
}
