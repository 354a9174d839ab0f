import { createDirectStorages, type ResourceStorages } from '@keelson/core/internal';
import { FakeClock } from '@keelson/core/runtime';
import { cacheCases } from './resource-storage/cases/cache-cases.ts';
import { cacheFeedCases } from './resource-storage/cases/cache-feed-cases.ts';
import { createCases } from './resource-storage/cases/create-cases.ts';
import { deleteCases } from './resource-storage/cases/delete-cases.ts';
import { getCases } from './resource-storage/cases/get-cases.ts';
import { listCases } from './resource-storage/cases/list-cases.ts';
import { modelCases } from './resource-storage/cases/model-cases.ts';
import { pageCases } from './resource-storage/cases/page-cases.ts';
import { readPointCases } from './resource-storage/cases/read-point-cases.ts';
import { stateCases } from './resource-storage/cases/state-cases.ts';
import { updateCases } from './resource-storage/cases/update-cases.ts';
import { watchCases } from './resource-storage/cases/watch-cases.ts';
import { watchReadingCases } from './resource-storage/cases/watch-reading-cases.ts';
import { windowCases } from './resource-storage/cases/window-cases.ts';
import { ControlledStore } from './resource-storage/controlled-store.ts';
import {
  missingResourceStorageRequirements,
  type ResourceStorageCase,
  type ResourceStorageHarness,
} from './resource-storage/harness.ts';
import { nodeKind, podKind } from './resource-storage/objects.ts';
import type { OpenedStore } from './store/harness.ts';
import type { RunOptions } from './store-suite.ts';
import {
  caseSeed,
  casesOf,
  caseTimeoutMs,
  registerCases,
  runCase,
  type TestFunction,
} from './suite/conformance-suite.ts';

/** All cases for implementations of `ResourceStorage`; the ids of the cases are stable and unique. */
export const resourceStorageCases: readonly ResourceStorageCase[] = casesOf(
  createCases,
  getCases,
  listCases,
  readPointCases,
  pageCases,
  updateCases,
  deleteCases,
  watchCases,
  watchReadingCases,
  stateCases,
  cacheCases,
  cacheFeedCases,
  windowCases,
  modelCases,
);

/**
 * Opens a store and storages, runs one case on them and disposes of both. Rejects when the case fails; the message
 * contains harness, case and seed.
 */
export function runResourceStorageCase<O extends OpenedStore>(
  harness: ResourceStorageHarness<O>,
  resourceCase: ResourceStorageCase,
  { seed, timeoutMs = caseTimeoutMs, log = () => {} }: RunOptions,
): Promise<void> {
  return runCase({ name: harness.name, seed, timeoutMs }, resourceCase, async (defer) => {
    const opened = await harness.stores.open();
    defer(() => opened.dispose());
    const store = new ControlledStore(opened.store);
    const clock = new FakeClock();
    const started: ResourceStorages[] = [];
    const start = async (storages: ResourceStorages) => {
      started.push(storages);
      await storages.start();
      return storages;
    };
    defer(async () => {
      store.releaseStreams();
      for (const storages of started) await storages.stop();
    });
    const storages = await start(harness.storages(store, clock));
    return {
      storages,
      pods: storages.forKind(podKind),
      nodes: storages.forKind(nodeKind),
      others: createDirectStorages({ store: opened.store, clock }).forKind(podKind),
      store,
      clock,
      cached: harness.narrow !== undefined,
      seed,
      narrow: (events) => {
        if (harness.narrow === undefined) throw new Error('the harness has no such hook; the case must require it');
        return start(harness.narrow(store, clock, events));
      },
      advance: async (ms) => harness.stores.advance?.(opened, ms),
      log,
    };
  });
}

/**
 * Registers every case, or those given, as a test. Titles are `NAME: ID: sentence`. A case that the harness cannot run
 * is skipped, with the reason in its title. Random cases use `KEELSON_SEED` when it is set.
 */
export function registerResourceStorageConformance<O extends OpenedStore>(
  test: TestFunction,
  harness: ResourceStorageHarness<O>,
  cases: readonly ResourceStorageCase[] = resourceStorageCases,
): void {
  registerCases(
    test,
    harness.name,
    cases,
    (resourceCase) => missingResourceStorageRequirements(harness as unknown as ResourceStorageHarness, resourceCase),
    (resourceCase, t) =>
      runResourceStorageCase(harness, resourceCase, { seed: caseSeed(), log: (message) => t.log(message) }),
  );
}
