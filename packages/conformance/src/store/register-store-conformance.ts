import { randomInt } from 'node:crypto';
import { missingRequirements, type OpenedStore, type StoreHarness } from './harness.ts';
import { runStoreCase } from './run-store-case.ts';
import { storeCases } from './store-cases.ts';

/** The part of a test's context that the suite uses; ava's has it. */
export interface TestContext {
  pass(message?: string): void;
  log(...values: unknown[]): void;
  timeout(ms: number): void;
}

/** The part of a test function that the suite uses; ava's `test` is one. */
export interface TestFunction {
  (title: string, run: (t: TestContext) => Promise<void>): void;
  skip(title: string, run: (t: TestContext) => Promise<void>): void;
}

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`; a case that the harness cannot run is skipped and
 * its title says why. Random cases use `KEELSON_SEED` when it is set.
 */
export function registerStoreConformance<O extends OpenedStore>(test: TestFunction, harness: StoreHarness<O>): void {
  const given = process.env['KEELSON_SEED'];
  for (const storeCase of storeCases) {
    const title = `${harness.name}: ${storeCase.id}: ${storeCase.title}`;
    const missing = missingRequirements(harness as unknown as StoreHarness, storeCase);
    if (missing.length > 0) {
      test.skip(`${title} [not run, the harness has no ${missing.join(', ')}]`, async () => {});
      continue;
    }
    test(title, async (t) => {
      t.timeout(60_000);
      const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
      await runStoreCase(harness, storeCase, { seed, log: (message) => t.log(message) });
      t.pass();
    });
  }
}
