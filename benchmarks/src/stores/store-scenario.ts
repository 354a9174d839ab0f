import type { Store } from '@keelson/core/storage-adapter';
import type { Goal, Measurement, Round } from '../scenarios/scenario.ts';
import type { Ground } from './ground.ts';
import { openStore } from './store-spec.ts';

/** What store scenarios measure with. */
export interface StoreStage {
  readonly ground: Ground;
  /** 1 KB of random bytes. */
  readonly value: Buffer;
  readonly rounds: number;
  readonly sliceMs: number;
  readonly objects: number;
  readonly progress: (text: string) => void;
  /** A store with objects and a past, the same for all scenarios of the stage. */
  loaded(): Promise<LoadedStore>;
}

export interface LoadedStore {
  readonly store: Store;
  readonly keys: readonly string[];
  /** When the objects were written; twice as many changes came after it. */
  readonly oldRevision: number;
}

/** Compares a store with its raw backend, or with itself. */
export interface StoreScenario {
  readonly name: string;
  readonly what: string;
  /** Undefined where nothing was promised: the figure is shown and not judged. */
  goal(adapter: string): Goal | undefined;
  /** The form of the ratio: a share of the raw throughput, or a multiple of the floor. */
  readonly form: Goal['form'];
  /** Why it says nothing about the adapter; undefined when it does. */
  inapplicable?(adapter: string): string | undefined;
  run(stage: StoreStage): Promise<Measurement>;
}

const writesAtOnce = 256;

async function inBatches(keys: readonly string[], write: (key: string) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < keys.length; at += writesAtOnce)
    await Promise.all(keys.slice(at, at + writesAtOnce).map(write));
}

/** Writes the objects and twice as many changes into a store, and the objects into the raw backend. */
export async function loadStore(ground: Ground, objects: number, value: Buffer): Promise<LoadedStore> {
  const keys = Array.from({ length: objects }, (_, index) => `/k/${String(index).padStart(8, '0')}`);
  const store = await openStore(ground.spec('loaded'));
  const revisions = new Map<string, number>();
  const put = async (key: string): Promise<void> => {
    const result = await store.write({ op: 'put', key, value, expect: revisions.get(key) ?? 0 });
    if (!result.ok) throw new Error(`${key} was not written`);
    revisions.set(key, result.revision);
  };
  await inBatches(keys, put);
  const oldRevision = await store.currentRevision();
  await inBatches(keys, put);
  await inBatches(keys, put);
  await ground.raw.fill(keys);
  return { store, keys, oldRevision };
}

/** A round whose floor is further than this from the best one was disturbed. */
const tolerance = 1.2;
const leastGood = 5;

const mostRepeated = 5;

/** Measures rounds after one that warms up; while too few of them are undisturbed, up to five more. */
export async function measureRounds(
  stage: StoreStage,
  measure: (round: number) => Promise<Round>,
): Promise<readonly Round[]> {
  const rounds: Round[] = [];
  await measure(0);
  const enough = (): boolean => {
    const best = Math.min(...rounds.map((round) => round.floor));
    return rounds.filter((round) => round.floor <= best * tolerance).length >= Math.min(leastGood, stage.rounds);
  };
  while (rounds.length < stage.rounds || (rounds.length < stage.rounds + mostRepeated && !enough())) {
    rounds.push(await measure(rounds.length + 1));
    stage.progress(`round ${rounds.length} of ${stage.rounds}`);
  }
  return rounds;
}
