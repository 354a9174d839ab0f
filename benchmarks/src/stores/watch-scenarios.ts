import { setTimeout as sleep } from 'node:timers/promises';
import { prefixRange, type Store } from '@keelson/core/storage-adapter';
import { median, percentile } from '../measure/statistics.ts';
import type { Measurement } from '../scenarios/scenario.ts';
import { measureRounds, type StoreScenario, type StoreStage } from './store-scenario.ts';
import { openStore } from './store-spec.ts';

/** Between writes nothing happens: the lag is that of an idle store. */
const pauseMs = 5;
const limitMs = 10_000;

/** Reports when each change of a watch arrived. */
class Arrivals {
  readonly #at = new Map<number, number>();
  readonly #waiting = new Map<number, (at: number) => void>();

  saw(revision: number): void {
    const at = performance.now();
    const waiting = this.#waiting.get(revision);
    if (waiting === undefined) this.#at.set(revision, at);
    else waiting(at);
  }

  of(revision: number): Promise<number> {
    const at = this.#at.get(revision);
    if (at !== undefined) return Promise.resolve(at);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`revision ${revision} did not reach the watch`)), limitMs);
      this.#waiting.set(revision, (then) => {
        clearTimeout(timer);
        resolve(then);
      });
    });
  }
}

async function lag(stage: StoreStage, writer: Store, watcher: Store): Promise<Measurement> {
  const arrivals = new Arrivals();
  const stream = await watcher.watch(prefixRange('/l/'), { after: await watcher.currentRevision() });
  const following = (async () => {
    for await (const { changes } of stream) for (const { revision } of changes) arrivals.saw(revision);
  })().catch(() => {});
  const lags: number[] = [];
  const writes = Math.max(4, Math.round(stage.sliceMs / (pauseMs * 2)));
  try {
    const rounds = await measureRounds(stage, async (round) => {
      const acknowledged: number[] = [];
      const delivered: number[] = [];
      for (let number = 0; number < writes; number += 1) {
        const at = performance.now();
        const result = await writer.write({ op: 'put', key: `/l/${round}/${number}`, value: stage.value, expect: 0 });
        acknowledged.push(performance.now() - at);
        delivered.push((await arrivals.of(result.revision)) - at);
        await sleep(pauseMs);
      }
      if (round > 0) lags.push(...delivered);
      return { floor: median(acknowledged), subject: median(delivered) };
    });
    return { unit: 'ms', rounds, notes: { 'p50 ms': percentile(lags, 0.5), 'p99 ms': percentile(lags, 0.99) } };
  } finally {
    await stream.close();
    await following;
  }
}

export const watchScenarios: readonly StoreScenario[] = [
  {
    name: 'store watch lag',
    what: 'from the call of a write to its arrival at a watch of the same instance, idle otherwise, beside the time to its acknowledgement',
    form: 'times',
    goal: () => undefined,
    run: async (stage) => {
      const store = await openStore(stage.ground.spec('lag'));
      try {
        return await lag(stage, store, store);
      } finally {
        await store.close();
      }
    },
  },
  {
    name: 'store watch lag to a replica',
    what: 'the same with the watch on a second instance with connections of its own',
    form: 'times',
    goal: () => ({ form: 'times', mark: 3 }),
    inapplicable: (adapter) =>
      adapter === 'memory' || adapter === 'lmdb' ? 'one process at a time has this store' : undefined,
    run: async (stage) => {
      const writer = await openStore(stage.ground.spec('replica'));
      try {
        const watcher = await openStore(stage.ground.spec('replica'));
        try {
          return await lag(stage, writer, watcher);
        } finally {
          await watcher.close();
        }
      } finally {
        await writer.close();
      }
    },
  },
];
