import type { Store } from '@keelson/core/storage-adapter';
import { compactionCases } from './store/cases/compaction-cases.ts';
import { compactionRaceCases } from './store/cases/compaction-race-cases.ts';
import { expiryCases } from './store/cases/expiry-cases.ts';
import { frontierCases } from './store/cases/frontier-cases.ts';
import { historyCases } from './store/cases/history-cases.ts';
import { keyValueCases } from './store/cases/key-value-cases.ts';
import { lifeCycleCases } from './store/cases/life-cycle-cases.ts';
import { listCases } from './store/cases/list-cases.ts';
import { modelCases } from './store/cases/model-cases.ts';
import { pastCases } from './store/cases/past-cases.ts';
import { restartCases } from './store/cases/restart-cases.ts';
import { revisionCases } from './store/cases/revision-cases.ts';
import { streamCases } from './store/cases/stream-cases.ts';
import { watchCases } from './store/cases/watch-cases.ts';
import { watchLoadCases } from './store/cases/watch-load-cases.ts';
import { writeCases } from './store/cases/write-cases.ts';
import { missingRequirements, type OpenedStore, type StoreCase, type StoreHarness } from './store/harness.ts';
import {
  caseSeed,
  casesOf,
  caseTimeoutMs,
  registerCases,
  runCase,
  type TestFunction,
} from './suite/conformance-suite.ts';

/** All cases for stores; the ids of the cases are stable and unique. */
export const storeCases: readonly StoreCase[] = casesOf(
  revisionCases,
  writeCases,
  keyValueCases,
  listCases,
  pastCases,
  watchCases,
  watchLoadCases,
  frontierCases,
  streamCases,
  compactionCases,
  compactionRaceCases,
  historyCases,
  expiryCases,
  lifeCycleCases,
  restartCases,
  modelCases,
);

/** Options of a run of one case of a store. */
export interface RunOptions {
  readonly seed: number;
  /** Time limit of the case in milliseconds. Default 60 s. */
  readonly timeoutMs?: number;
  readonly log?: (message: string) => void;
}

/**
 * Opens a store, runs one case on it and disposes of every store that the case has opened. Rejects when the case fails;
 * the message contains harness, case and seed.
 */
export function runStoreCase<O extends OpenedStore>(
  harness: StoreHarness<O>,
  storeCase: StoreCase,
  { seed, timeoutMs = caseTimeoutMs, log = () => {} }: RunOptions,
): Promise<void> {
  const openStores = new Set<O>();
  const track = async (opening: Promise<O>) => {
    const opened = await opening;
    openStores.add(opened);
    return opened;
  };
  return runCase({ name: harness.name, seed, timeoutMs }, storeCase, async (defer) => {
    defer(async () => {
      for (const opened of openStores) await opened.dispose();
    });
    let opened = await track(harness.open());
    const replace = async (hook: ((opened: O) => Promise<O>) | undefined): Promise<Store> => {
      if (hook === undefined) throw new Error('the harness has no such hook; the case must require it');
      openStores.delete(opened);
      opened = await track(hook.call(harness, opened));
      return opened.store;
    };
    return {
      store: opened.store,
      capabilities: harness.capabilities,
      seed,
      another: async () => (await track(harness.open())).store,
      advance: async (ms) => harness.advance?.(opened, ms),
      reopen: () => replace(harness.reopen),
      killAndReopen: () => replace(harness.killAndReopen),
      log,
    };
  });
}

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`. A case that the harness cannot run is skipped, with
 * the reason in its title. Random cases use `KEELSON_SEED` when it is set.
 */
export function registerStoreConformance<O extends OpenedStore>(test: TestFunction, harness: StoreHarness<O>): void {
  registerCases(
    test,
    harness.name,
    storeCases,
    (storeCase) => missingRequirements(harness as unknown as StoreHarness, storeCase),
    (storeCase, t) => runStoreCase(harness, storeCase, { seed: caseSeed(), log: (message) => t.log(message) }),
  );
}
