import { type ListChunk, prefixRange } from '@keelson/core/storage-adapter';
import { median } from '../measure/statistics.ts';
import type { Measurement } from '../scenarios/scenario.ts';
import { keepInFlight, type Throughput } from './in-flight.ts';
import { type LoadedStore, measureRounds, type StoreScenario, type StoreStage } from './store-scenario.ts';

const getsInFlight = 32;
const pageSize = 500;

type Operation = (number: number) => Promise<unknown>;

/** Alternating slices of two operations; cost is time per operation. */
async function beside(stage: StoreStage, inFlight: number, floor: Operation, subject: Operation): Promise<Measurement> {
  const measured: Throughput[] = [];
  const rounds = await measureRounds(stage, async (round) => {
    const below = await keepInFlight(inFlight, stage.sliceMs, floor);
    const above = await keepInFlight(inFlight, stage.sliceMs, subject);
    if (round > 0) measured.push(above);
    return { floor: 1e6 / below.perSecond, subject: 1e6 / above.perSecond };
  });
  return {
    unit: 'wall µs',
    rounds,
    notes: {
      'p50 ms': median(measured.map((each) => each.p50Ms)),
      'p99 ms': median(measured.map((each) => each.p99Ms)),
    },
  };
}

const keyAt = (keys: readonly string[], number: number): string => keys[(number * 7919) % keys.length] ?? '';

/** Pages begin at various places, so that not one page alone is warm. */
const pageStart = (keys: readonly string[], number: number): string => {
  const pages = Math.max(1, Math.floor(keys.length / pageSize));
  return keys[(number % pages) * pageSize] ?? '';
};

async function page({ store, keys }: LoadedStore, number: number, revision?: number): Promise<readonly ListChunk[]> {
  const chunks: ListChunk[] = [];
  const range = { start: pageStart(keys, number), end: prefixRange('/k/').end };
  const options = { limit: pageSize, ...(revision === undefined ? {} : { revision }) };
  for await (const chunk of store.list(range, options)) chunks.push(chunk);
  const entries = chunks.reduce((sum, chunk) => sum + chunk.entries.length, 0);
  if (entries !== Math.min(pageSize, keys.length)) throw new Error(`a page of ${entries} entries`);
  return chunks;
}

export const readScenarios: readonly StoreScenario[] = [
  {
    name: 'store get',
    what: 'one key, linearizable, 32 in flight, beside the same read of the raw backend',
    form: 'share',
    goal: (adapter) => (adapter === 'lmdb' ? { form: 'share', mark: 0.6 } : undefined),
    run: async (stage) => {
      const { store, keys } = await stage.loaded();
      return beside(
        stage,
        getsInFlight,
        (number) => stage.ground.raw.get(keyAt(keys, number)),
        async (number) => {
          const { entry } = await store.get(keyAt(keys, number));
          if (entry === undefined) throw new Error('a key is missing');
        },
      );
    },
  },
  {
    name: 'store list 500',
    what: 'a page of 500 entries of 1 KB, one at a time, beside the same range of the raw backend',
    form: 'share',
    goal: () => undefined,
    run: async (stage) => {
      const loaded = await stage.loaded();
      return beside(
        stage,
        1,
        (number) => stage.ground.raw.page(pageStart(loaded.keys, number)),
        (number) => page(loaded, number),
      );
    },
  },
  {
    name: 'store list 500 of the past',
    what: 'a page of 500 at a revision after which every key changed twice, beside the current page',
    form: 'times',
    goal: () => ({ form: 'times', mark: 1.5 }),
    run: async (stage) => {
      const loaded = await stage.loaded();
      return beside(
        stage,
        1,
        (number) => page(loaded, number),
        (number) => page(loaded, number, loaded.oldRevision),
      );
    },
  },
];
