import type { Store } from '@keelson/core/storage-adapter';
import test from 'ava';
import {
  frozenStore,
  missingRequirements,
  Random,
  registerStoreConformance,
  runStoreCase,
  type StoreCase,
  type StoreHarness,
  StoreModel,
  storeCases,
} from '../../src/index.ts';

const capabilities = {
  denseRevisions: false,
  oneChangePerRevision: true,
  multiWriter: false,
  durable: false,
  maxKeyBytes: 1024,
  maxValueBytes: 1 << 20,
};
const value = Buffer.from('x');

/** A harness whose stores are named and do nothing; `disposed` lists those that were disposed. */
function emptyHarness(disposed: string[] = []): StoreHarness {
  let opened = 0;
  return {
    name: 'empty',
    capabilities,
    async open() {
      const name = `store ${++opened}`;
      return { store: { name } as unknown as Store, dispose: async () => void disposed.push(name) };
    },
  };
}

const caseOf = (run: StoreCase['run'], requires: StoreCase['requires'] = []): StoreCase => ({
  id: 'x.y',
  title: 'a thing',
  requires,
  run,
});

test('there are enough cases, each with a unique id and a title', (t) => {
  t.true(storeCases.length >= 170, String(storeCases.length));
  t.is(new Set(storeCases.map(({ id }) => id)).size, storeCases.length);
  for (const { id, title } of storeCases) {
    t.regex(id, /^[a-z]+(\.[a-z0-9]+(-[a-z0-9]+)*)$/);
    t.true(title.length > 15 && !title.endsWith('.'), title);
  }
});

test('cases that a harness cannot run are skipped with the reason in the title, all others are registered', (t) => {
  const [run, skipped]: [string[], string[]] = [[], []];
  const fake = Object.assign((title: string) => void run.push(title), {
    skip: (title: string) => void skipped.push(title),
  });
  registerStoreConformance(fake, emptyHarness());
  t.is(run.length + skipped.length, storeCases.length);
  t.true(skipped.length > 0);
  for (const title of skipped) t.regex(title, /^empty: .* \[not run, the harness has no .+\]$/);
  const revisionDense = skipped.find((title) => title.includes('revision.dense:'));
  t.regex(revisionDense ?? '', /no denseRevisions\]$/);
  t.deepEqual(
    missingRequirements(
      emptyHarness(),
      caseOf(async () => {}, ['advance', 'durable']),
    ),
    ['advance', 'durable'],
  );
});

test('the error of a failed case contains its id and the seed, and its stores are disposed', async (t) => {
  const disposed: string[] = [];
  const failing = caseOf(async ({ another }) => {
    await another();
    throw new Error('no good');
  });
  const error = await t.throwsAsync(runStoreCase(emptyHarness(disposed), failing, { seed: 42 }));
  t.is(error.message, 'empty: x.y: no good (KEELSON_SEED=42)');
  t.deepEqual(disposed, ['store 1', 'store 2']);
});

test('a case that does not end fails', async (t) => {
  const disposed: string[] = [];
  const endless = caseOf(() => new Promise(() => {}));
  await t.throwsAsync(runStoreCase(emptyHarness(disposed), endless, { seed: 1, timeoutMs: 20 }), {
    message: /not finished within 20 ms/,
  });
  t.deepEqual(disposed, ['store 1']);
});

test('a case that uses a hook it does not require fails', async (t) => {
  const careless = caseOf(async ({ reopen }) => void (await reopen()));
  await t.throwsAsync(runStoreCase(emptyHarness(), careless, { seed: 1 }), { message: /must require it/ });
});

test('the model rejects impossible results', (t) => {
  const model = new StoreModel(1);
  model.apply({ op: 'put', key: '/a', value, expect: 0 }, 5);
  t.throws(() => model.apply({ op: 'put', key: '/b', value, expect: 0 }, 5), {
    message: /revision 5 was returned after 5/,
  });
  t.throws(() => model.apply({ op: 'put', key: '/a', value, expect: 0 }, 6), { message: /succeeded/ });
  t.false(model.accepts({ op: 'delete', key: '/b', expect: 0 }));
  model.apply({ op: 'delete', key: '/a', expect: 5 }, 9);
  const all = { start: '/', end: '0' };
  t.deepEqual(
    [4, 5, 8, 9].map((revision) => model.list(all, revision).length),
    [0, 1, 1, 0],
  );
  t.deepEqual(
    model.changesAfter(5, all).map(({ type, prev }) => [type, prev?.value]),
    [['delete', 'x']],
  );
});

test('the frozen store detects changed bytes, and entries cannot be changed', async (t) => {
  const shared = Buffer.from('before');
  const entry = { key: '/a', value: shared, createRevision: 2, modRevision: 2 };
  const { store, verify } = frozenStore({
    capabilities,
    get: async () => ({ entry, revision: 2 }),
  } as unknown as Store);
  const answer = await store.get('/a');
  t.throws(() => Object.assign(answer.entry ?? {}, { modRevision: 3 }), { instanceOf: TypeError });
  t.notThrows(verify);
  shared.write('after!');
  t.throws(verify, { message: /bytes changed/ });
});

test('the same seed results in the same choices', (t) => {
  const choices = (seed: number) => {
    const random = new Random(seed);
    return Array.from({ length: 20 }, () => random.below(1000));
  };
  t.deepEqual(choices(7), choices(7));
  t.notDeepEqual(choices(7), choices(8));
  t.true(choices(7).every((choice) => choice >= 0 && choice < 1000));
  t.throws(() => new Random(1).pick([]), { instanceOf: RangeError });
});
