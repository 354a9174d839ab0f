import { createDirectStorages, FakeClock, type ResourceStorages } from '@keelson/core';
import type { OpenedStore } from '../store/harness.ts';
import type { RunOptions } from '../store/run-store-case.ts';
import { ControlledStore } from './controlled-store.ts';
import type { ResourceStorageCase, ResourceStorageHarness } from './harness.ts';
import { nodeKind, podKind } from './objects.ts';

/**
 * Opens a store and storages, runs one case on them and disposes of both. The message of a failure tells case and seed.
 */
export async function runResourceStorageCase<O extends OpenedStore>(
  harness: ResourceStorageHarness<O>,
  resourceCase: ResourceStorageCase,
  options: RunOptions,
): Promise<void> {
  const timeoutMs = options.timeoutMs ?? 30_000;
  const opened = await harness.stores.open();
  const store = new ControlledStore(opened.store);
  const clock = new FakeClock();
  const started: ResourceStorages[] = [];
  const start = async (storages: ResourceStorages) => {
    started.push(storages);
    await storages.start();
    return storages;
  };
  let timer: NodeJS.Timeout | undefined;
  try {
    const storages = await start(harness.storages(store, clock));
    const run = resourceCase.run({
      storages,
      pods: storages.forKind(podKind),
      nodes: storages.forKind(nodeKind),
      others: createDirectStorages({ store: opened.store, clock }).forKind(podKind),
      store,
      clock,
      cached: harness.narrow !== undefined,
      seed: options.seed,
      narrow: (events) => {
        if (harness.narrow === undefined) throw new Error('the harness has no such hook; the case must require it');
        return start(harness.narrow(store, clock, events));
      },
      advance: async (ms) => harness.stores.advance?.(opened, ms),
      log: options.log ?? (() => {}),
    });
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not finished within ${timeoutMs} ms`)), timeoutMs);
    });
    await Promise.race([run, late]);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${harness.name}: ${resourceCase.id}: ${text} (KEELSON_SEED=${options.seed})`, { cause: error });
  } finally {
    clearTimeout(timer);
    store.releaseStreams();
    for (const storages of started) await storages.stop();
    await opened.dispose();
  }
}
