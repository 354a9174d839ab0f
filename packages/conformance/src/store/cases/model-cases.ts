import assert from 'node:assert/strict';
import type { Store, WriteOp, WriteResult } from '@keelson/core/storage-adapter';
import { Random } from '../../suite/random.ts';
import type { StoreCase, StoreCaseContext } from '../harness.ts';
import { StoreModel } from '../model.ts';
import { bytes, everything, failsWith, listAll, listPages } from '../store-driver.ts';
import { Twin } from '../twin.ts';
import { changesBetween } from '../watcher.ts';

const keys = ['/a', '/a/b', '/a/c', '/ab', '/b', '/ns1/x', '/ns10/x', '/é', '/\ue000', '/\u{1f600}'];

function randomOp(random: Random, model: StoreModel, serial: number): WriteOp {
  const key = random.pick(keys);
  const current = model.current(key)?.modRevision ?? 0;
  const expect = random.chance(0.75) ? current : random.pick([0, 1, model.revision, model.revision + 1, current + 1]);
  if (random.chance(0.3)) return { op: 'delete', key, expect };
  return {
    op: 'put',
    key,
    expect,
    value: bytes(`${serial}:${'.'.repeat(random.below(random.chance(0.05) ? 20_000 : 50))}`),
  };
}

/** Any sequence of calls has the same results as the model. */
async function randomOperations(
  { store, seed, reopen }: StoreCaseContext,
  steps: number,
  restarts: boolean,
): Promise<void> {
  const random = new Random(seed);
  let twin = await Twin.of(store);
  let bound = 0;
  for (let step = 0; step < steps; step++) {
    const { model } = twin;
    const known = [bound, ...model.changes.map((change) => change.revision)].filter(
      (revision) => revision >= Math.max(bound, 1),
    );
    const roll = random.next();
    if (roll < 0.6) {
      await twin.write(randomOp(random, model, step));
    } else if (roll < 0.8) {
      const revision = random.pick(known.length === 0 ? [model.revision] : known);
      const limit = 1 + random.below(6);
      assert.deepEqual(
        (await listPages(twin.store, everything, limit, revision)).entries,
        model.list(everything, revision),
      );
    } else if (roll < 0.92) {
      const after = random.pick(known.length === 0 ? [model.revision] : known);
      const range = random.chance(0.5) ? everything : { start: '/a', startExclusive: random.chance(0.5), end: '/b' };
      assert.deepEqual(
        await changesBetween(twin.store, after, model.revision, { range }),
        model.changesAfter(after, range),
      );
    } else if (roll < 0.97 || !restarts) {
      if (!random.chance(0.3) || known.length === 0) continue;
      bound = Math.max(bound, random.pick(known));
      await twin.store.compact(bound);
      if (bound > 1) await failsWith('Compacted', () => twin.store.get('/a', { revision: bound - 1 }));
    } else {
      twin = twin.on(await reopen());
    }
  }
  assert.deepEqual((await listAll(twin.store, everything)).entries, twin.model.list(everything, twin.model.revision));
}

interface Attempt {
  readonly op: WriteOp;
  readonly result: WriteResult;
}

/** Runs writers concurrently and returns their writes in the order of the revisions. */
async function sideBySide(store: Store, random: Random, writers: number, writes: number): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const writer = async (name: number) => {
    for (let i = 0; i < writes; i++) {
      const key = random.pick(keys);
      const { entry } = await store.get(key);
      const expect = entry?.modRevision ?? 0;
      const remove = entry !== undefined && random.chance(0.3);
      const op: WriteOp = remove
        ? { op: 'delete', key, expect }
        : { op: 'put', key, expect, value: bytes(`${name}-${i}`) };
      attempts.push({ op, result: await store.write(op) });
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, name) => writer(name)));
  return attempts.sort((a, b) => a.result.revision - b.result.revision);
}

/** Random calls against the model; the seed of a failure replays its choices. */
export const modelCases: readonly StoreCase[] = [
  {
    id: 'model.random-operations',
    title: 'random writes, reads, watches and compactions have the results of the model',
    run: (context) => randomOperations(context, 400, false),
  },
  {
    id: 'model.random-operations-and-restarts',
    title: 'random calls have the results of the model, across restarts',
    requires: ['reopen', 'durable'],
    run: (context) => randomOperations(context, 250, true),
  },
  {
    id: 'model.concurrent-history',
    title: 'the history of concurrent writers is linearizable',
    async run({ store, seed }) {
      const model = new StoreModel(await store.currentRevision());
      const start = model.revision;
      const attempts = await sideBySide(store, new Random(seed), 12, 25);
      const won = attempts.filter(({ result }) => result.ok);
      for (const { op, result } of won) model.apply(op, result.revision);
      for (const { op, result } of attempts) {
        if (result.ok) continue;
        const then = model.list(everything, result.revision).find((entry) => entry.key === op.key);
        assert.equal(result.current?.modRevision, then?.modRevision, 'a refusal shows the entry of its revision');
        assert.notEqual(result.current?.modRevision ?? 0, op.expect, 'a refusal has its reason');
      }
      assert.deepEqual(await changesBetween(store, start, model.revision), model.changes);
      for (const { revision } of model.changes.filter((_, i) => i % 11 === 0)) {
        assert.deepEqual((await listAll(store, everything, { revision })).entries, model.list(everything, revision));
      }
    },
  },
];
