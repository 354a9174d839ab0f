import { median } from '../measure/statistics.ts';
import type { Goal } from '../scenarios/scenario.ts';
import { keepInFlight, type Throughput } from './in-flight.ts';
import { measureRounds, type StoreScenario } from './store-scenario.ts';
import { openStore } from './store-spec.ts';

/** What was promised: share of the raw throughput, by writes in flight. */
const marks: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  memory: { 1: 0.15, 32: 0.15, 256: 0.15 },
  lmdb: { 1: 0.7, 32: 0.6, 256: 0.5 },
  etcd: { 32: 0.95 },
  postgres: { 1: 0.3, 32: 0.9, 256: 1.1 },
};

export const inFlightSteps = [1, 32, 256] as const;

/** Nothing waits for a disk in memory: longer slices would only fill it. */
const longestInMemoryMs = 250;

const writes = (inFlight: number): StoreScenario => ({
  name: `store write ${inFlight}`,
  what: `1 KB values under new keys, ${inFlight} in flight, beside the raw backend on the same disk (Postgres: at most 32 connections)`,
  form: 'share',
  goal: (adapter): Goal | undefined => {
    const mark = marks[adapter]?.[inFlight];
    return mark === undefined ? undefined : { form: 'share', mark };
  },
  run: async (stage) => {
    const { ground, value } = stage;
    const sliceMs = ground.adapter === 'memory' ? Math.min(longestInMemoryMs, stage.sliceMs) : stage.sliceMs;
    const store = await openStore(ground.spec(`write${inFlight}`));
    const raws: Throughput[] = [];
    const subjects: Throughput[] = [];
    try {
      const rounds = await measureRounds(stage, async (round) => {
        const raw = await ground.raw.write(inFlight, sliceMs);
        const subject = await keepInFlight(inFlight, sliceMs, async (number) => {
          const result = await store.write({ op: 'put', key: `/w/${round}/${number}`, value, expect: 0 });
          if (!result.ok) throw new Error('a new key was taken');
        });
        if (round > 0) {
          raws.push(raw);
          subjects.push(subject);
        }
        return { floor: 1e6 / raw.perSecond, subject: 1e6 / subject.perSecond };
      });
      const of = (all: readonly Throughput[], field: keyof Throughput) => median(all.map((each) => each[field]));
      return {
        unit: 'wall µs per write',
        rounds,
        notes: {
          'writes/s': of(subjects, 'perSecond'),
          'raw writes/s': of(raws, 'perSecond'),
          'p50 ms': of(subjects, 'p50Ms'),
          'p90 ms': of(subjects, 'p90Ms'),
          'p99 ms': of(subjects, 'p99Ms'),
          'raw p50 ms': of(raws, 'p50Ms'),
          ...(Number.isNaN(of(raws, 'p99Ms')) ? {} : { 'raw p99 ms': of(raws, 'p99Ms') }),
        },
        remark: `raw: ${ground.raw.what}`,
      };
    } finally {
      await store.close();
    }
  },
});

export const writeScenarios: readonly StoreScenario[] = inFlightSteps.map(writes);
