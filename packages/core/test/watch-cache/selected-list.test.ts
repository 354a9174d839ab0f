import test from 'ava';
import fc from 'fast-check';
import { type ObjectPredicate, StorageMemory, StoredObject } from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { compareKeys } from '../../src/storage-adapter.ts';
import type { IndexSnapshot } from '../../src/watch-cache/ordered-index.ts';
import { OrderedIndex } from '../../src/watch-cache/ordered-index.ts';
import { selectedList } from '../../src/watch-cache/snapshot-list.ts';

const clock = new FakeClock();
const memory = new StorageMemory(clock);
const key = (i: number) => `/core/pods/n/x${String(i).padStart(6, '0')}`;

let revisions = 0;
function object(name: string, app: string): StoredObject {
  revisions++;
  return StoredObject.fromValue(
    name,
    revisions,
    revisions,
    Buffer.from(JSON.stringify({ metadata: { labels: { app } } })),
  );
}

/** Counts how many objects a list inspects. */
function labelled(app: string): ObjectPredicate & { inspected: number } {
  const read = (one: StoredObject) => one.value().metadata?.labels?.['app'];
  return {
    everything: false,
    id: app,
    inspected: 0,
    pin: { attribute: 'label app', value: app, read },
    matches(one) {
      this.inspected++;
      return read(one) === app;
    },
  };
}

async function keysOf(snapshot: IndexSnapshot, predicate: ObjectPredicate, from = 0, to = snapshot.size, limit = 0) {
  const options = { at: { at: 'any' }, predicate, ...(limit > 0 && { limit }) } as const;
  const list = await selectedList(snapshot, 1, { from, to }, options, clock);
  return { keys: [...list.objects()].map((one) => one.key), next: list.next?.after };
}

test('a repeated list by one field value reads only objects with that value, until they change', async (t) => {
  const index = OrderedIndex.live(memory);
  for (let i = 0; i < 1000; i++) index.set(object(key(i), `app-${i % 100}`));
  const inspected = async () => {
    const predicate = labelled('app-7');
    const { keys } = await keysOf(index.snapshot(), predicate);
    t.is(keys.length, 10);
    return predicate.inspected;
  };
  t.is(await inspected(), 1000);
  t.is(await inspected(), 0, 'what was selected in an unchanged state is known');
  t.deepEqual((await keysOf(index.snapshot(), labelled('app-none'))).keys, []);

  index.set(object(key(0), 'app-0'));
  const afterChange = await inspected();
  t.true(afterChange > 10 && afterChange < 200, `only the leaf that changed is inspected, not ${afterChange} objects`);
  t.is(await inspected(), 0);

  index.set(object(key(1), 'app-1'));
  t.true((await inspected()) < 200, 'the other leaves find the value in their indexes');
  index.delete(key(2));
  t.true((await inspected()) < 200);
});

test('what was selected in unchanged parts of a large index is known, also after changes of other parts', async (t) => {
  const index = OrderedIndex.live(memory);
  index.load(Array.from({ length: 30_000 }, (_, i) => object(key(i), `app-${i % 100}`)));
  const inspected = async (expected: number, from = 0, limit = 0) => {
    const { pin: _, ...rest } = labelled('app-7');
    const { keys } = await keysOf(index.snapshot(), rest, from, index.size, limit);
    t.is(keys.length, expected);
    t.is(new Set(keys).size, expected);
    return rest.inspected;
  };
  t.is(await inspected(300), 30_000);
  t.is(await inspected(300), 0);
  t.is(await inspected(250, 0, 250), 0);
  t.true((await inspected(290, 1000)) < 8_192, 'only the part that is not whole is inspected');
  index.set(object(key(15_000), 'app-7'));
  const after = await inspected(301);
  t.true(after > 0 && after <= 8_192, `one node of several leaves, not ${after} objects`);
  t.is(await inspected(301), 0);
});

test('lists by a field value equal a full filter, on the current index and on past snapshots', async (t) => {
  const steps = fc.array(
    fc.record({
      do: fc.constantFrom('set', 'set', 'set', 'delete', 'list', 'list', 'snapshot'),
      at: fc.nat(400),
      app: fc.constantFrom('a', 'b', 'c'),
      limit: fc.nat(5),
    }),
    { minLength: 200, maxLength: 1200, size: 'max' },
  );
  const property = fc.asyncProperty(steps, async (script) => {
    const index = OrderedIndex.live(memory);
    const model = new Map<string, string>();
    const states: { readonly snapshot: IndexSnapshot; readonly model: ReadonlyMap<string, string> }[] = [];
    const agrees = async (
      snapshot: IndexSnapshot,
      apps: ReadonlyMap<string, string>,
      app: string,
      at: number,
      limit: number,
    ) => {
      // Half of the lists are of everything, so that nodes are read as a whole.
      const [first, left] = at % 2 === 0 ? [0, 0] : [at, at % 7];
      const [from, to] = [Math.min(first, snapshot.size), Math.max(0, snapshot.size - left)];
      const ranked = [...apps].sort(([a], [b]) => compareKeys(a, b));
      const expected = ranked.slice(from, to).filter(([, value]) => value === app);
      const { keys, next } = await keysOf(snapshot, labelled(app), from, Math.max(from, to), limit);
      const wanted = (limit > 0 ? expected.slice(0, limit) : expected).map(([name]) => name);
      t.deepEqual(keys, wanted);
      if (limit > 0 && expected.length > limit) t.is(next, wanted.at(-1));
    };
    for (const { do: what, at, app, limit } of script) {
      const name = key(at);
      if (what === 'set') {
        index.set(object(name, app));
        model.set(name, app);
      } else if (what === 'delete') {
        index.delete(name);
        model.delete(name);
      } else if (what === 'snapshot') {
        if (states.length < 5) states.push({ snapshot: index.snapshot(), model: new Map(model) });
      } else {
        await agrees(index.snapshot(), model, app, at, limit);
        for (const state of states) await agrees(state.snapshot, state.model, app, at, limit);
      }
    }
  });
  await fc.assert(property, { numRuns: 30, verbose: 1 });
});
