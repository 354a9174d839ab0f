import test from 'ava';
import fc from 'fast-check';
import { pieceBytes, type Representation, StorageMemory, StoredObject } from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime.ts';
import type { PartForm } from '../../src/storage/resource-storage.ts';
import { compareKeys } from '../../src/storage-adapter.ts';
import type { IndexSnapshot } from '../../src/watch-cache/ordered-index.ts';
import { OrderedIndex } from '../../src/watch-cache/ordered-index.ts';
import { SnapshotList } from '../../src/watch-cache/snapshot-list.ts';

const stored: Representation = { id: 's', stored: true, encode: (object) => object.json };

const memory = new StorageMemory(new FakeClock());
/** Of objects whose bytes belong to the store. */
const shared = { sharedValues: true, memory };

let revisions = 0;
function object(key: string, text = ''): StoredObject {
  revisions++;
  return StoredObject.fromValue(key, revisions, revisions, Buffer.from(JSON.stringify({ metadata: {}, key, text })));
}

const key = (i: number) => `/core/pods/n/x${String(i).padStart(6, '0')}`;

const joinedByCommas: PartForm = {
  id: 'joined',
  *pieces(objects, isFirst) {
    if (!isFirst) yield Buffer.from(',');
    yield Buffer.from(objects.map(({ json }) => json.toString()).join(','));
  },
};
/** The bytes of shared parts by what identifies them. */
const bytesOf = new WeakMap<object, string>();

/** The bytes of a list in chunks; its parts have the same, and none whose identity had other bytes in another list. */
function body(snapshot: IndexSnapshot, from = 0, to = snapshot.size): string {
  const list = new SnapshotList(snapshot, 1, from, to, 0);
  const chunks = Buffer.concat([...list.chunks(stored, ',')]).toString();
  const parts = [...list.parts(joinedByCommas)].map((part) => {
    if (Buffer.isBuffer(part)) return part.toString();
    const bytes = Buffer.concat([...part.pieces()]).toString();
    if ((bytesOf.get(part.content) ?? bytes) !== bytes) throw new Error('a shared part has other bytes than before');
    bytesOf.set(part.content, bytes);
    return bytes;
  });
  if (parts.join('') !== chunks) throw new Error('the parts of a list differ from its chunks');
  return chunks;
}

type Step = { readonly do: 'set' | 'delete' | 'snapshot' | 'body'; readonly at: number };

/** A reference: a sorted array of objects. */
function expected(model: ReadonlyMap<string, StoredObject>): StoredObject[] {
  return [...model.values()].sort((a, b) => compareKeys(a.key, b.key));
}

test('the index and all its snapshots agree with a sorted map, in objects, ranks and bytes', (t) => {
  const steps = fc.array(
    fc.record<Step>({
      do: fc.constantFrom('set', 'set', 'set', 'set', 'set', 'delete', 'delete', 'snapshot', 'body'),
      at: fc.integer({ min: 0, max: 700 }),
    }),
    { minLength: 200, maxLength: 2500, size: 'max' },
  );
  fc.assert(
    fc.property(steps, (script) => {
      const index = OrderedIndex.live(memory);
      const model = new Map<string, StoredObject>();
      const snapshots: {
        readonly snapshot: IndexSnapshot;
        readonly objects: readonly StoredObject[];
        readonly body: string;
      }[] = [];
      for (const step of script) {
        const name = key(step.at);
        if (step.do === 'set') {
          const next = object(name, 'x'.repeat(step.at % 50));
          if (index.set(next) !== model.get(name)) return false;
          model.set(name, next);
        } else if (step.do === 'delete') {
          if (index.delete(name) !== model.get(name)) return false;
          model.delete(name);
        } else {
          const snapshot = index.snapshot();
          const objects = expected(model);
          const text = objects.map(({ json }) => json.toString()).join(',');
          if (step.do === 'body' && body(snapshot) !== text) return false;
          if (snapshots.length < 12) snapshots.push({ snapshot, objects, body: text });
        }
      }
      if (index.size !== model.size) return false;
      for (const { snapshot, objects, body: text } of snapshots) {
        if (snapshot.size !== objects.length || body(snapshot) !== text || body(snapshot) !== text) return false;
        const items = [...snapshot.items()];
        if (items.some((item, i) => item !== objects[i])) return false;
        for (const at of [0, 1, 350, 700, 701]) {
          const below = objects.filter((item) => item.key < key(at)).length;
          if (snapshot.rank(key(at)) !== below) return false;
          const found = objects.find((item) => item.key === key(at));
          if (snapshot.get(key(at)) !== found || snapshot.rankAfter(key(at)) !== below + (found ? 1 : 0)) return false;
        }
      }
      return true;
    }),
    { numRuns: 12 },
  );
  t.pass();
});

test('an index of many levels keeps its sizes and ranks while it grows and shrinks', (t) => {
  const index = OrderedIndex.scratch(OrderedIndex.live(memory).snapshot());
  const count = 30_000;
  // 7919 is prime to the number of objects, so that every key occurs once, in an irregular order.
  const order = Array.from({ length: count }, (_, i) => (i * 7919) % count);
  const present = new Uint8Array(count);
  /** Children of every inner node below the root, from top to bottom. */
  const inner = (node: object): number[] => {
    const { children = [] } = node as { readonly children?: readonly object[] };
    return children.flatMap((child) => {
      const below = (child as { readonly children?: readonly object[] }).children?.length;
      return below === undefined ? [] : [below, ...inner(child)];
    });
  };
  const check = () => {
    const snapshot = index.snapshot();
    t.true(
      inner(snapshot.root).every((width) => width <= 64),
      'no node has more children than it may have',
    );
    let below = 0;
    for (let i = 0; i < count; i++) {
      if (i % 1013 === 0 && snapshot.rank(key(i)) !== below)
        t.fail(`rank of ${i}: ${snapshot.rank(key(i))}, not ${below}`);
      below += present[i] as number;
    }
    t.is(snapshot.size, below);
    t.is([...snapshot.items(below >>> 1, below)].length, below - (below >>> 1));
  };
  for (const [step, i] of order.entries()) {
    index.set(new StoredObject(key(i), 1, 1, undefined));
    present[i] = 1;
    if (step % 10_000 === 0) check();
  }
  check();
  for (const [step, i] of order.entries()) {
    index.delete(key(i));
    present[i] = 0;
    if (step % 3000 === 0) check();
    if (step === count - 300) t.deepEqual(inner(index.snapshot().root), [], 'sparse nodes were joined');
  }
  t.is(index.size, 0);
});

test('an inner node beside a full one is not joined with it when it becomes small', (t) => {
  const index = OrderedIndex.scratch(OrderedIndex.live(memory).snapshot());
  const count = 30_000;
  for (let i = 0; i < count; i++) index.set(new StoredObject(key(i), 1, 1, undefined));
  const widths = () => {
    const { children = [] } = index.snapshot().root as { readonly children?: readonly { children?: object[] }[] };
    return children.map((child) => child.children?.length ?? 0);
  };
  t.is(widths()[0], 63, 'loading in ascending order leaves full nodes');
  for (let i = count - 1; i >= 0; i--) {
    index.delete(key(i));
    t.true(widths().every((width) => width <= 64));
  }
});

test('a leaf whose layout was rebuilt does not show an object that is removed afterwards', (t) => {
  const index = OrderedIndex.live(memory);
  index.load(Array.from({ length: 40 }, (_, i) => object(key(i))));
  for (let changes = 0; changes < 60; changes++) {
    // Between the changes of some round the bytes of all objects are copied into one block.
    for (let i = 0; i <= changes; i++) index.set(object(key(i % 39), String(i)));
    const last = object(key(39));
    index.set(last);
    index.delete(last.key);
    const all = [...index.snapshot().items()].map(({ json }) => json.toString());
    t.is(body(index.snapshot()), all.join(','), `after ${changes} changes`);
  }
});

test('every range of a snapshot reports the bytes of its objects', (t) => {
  const index = OrderedIndex.live(memory);
  for (let i = 0; i < 900; i++) index.set(object(key((i * 631) % 900), 'y'.repeat(i % 90)));
  const snapshot = index.snapshot();
  const all = [...snapshot.items()].map(({ json }) => json.toString());
  fc.assert(
    fc.property(fc.nat(900), fc.nat(900), (a, b) => {
      const [from, to] = a < b ? [a, b] : [b, a];
      return body(snapshot, from, to) === all.slice(from, to).join(',');
    }),
  );
  t.is(snapshot.rank('/'), 0);
  t.is(snapshot.rank('/core/pods0'), 900);
});

test('keys above U+FFFF are ordered by their bytes among the others', (t) => {
  const names = ['a', 'z', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}', '\u{1f600}b', '\uffeeb'].map(
    (n) => `/k/${n}`,
  );
  fc.assert(
    fc.property(fc.shuffledSubarray(names, { minLength: 3 }), (some) => {
      const index = OrderedIndex.live(memory);
      for (const name of some) index.set(object(name));
      const inOrder = [...some].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const snapshot = index.snapshot();
      t.is(snapshot.exotic, inOrder.at(-1)! >= '/k/\u{10000}', 'only such keys are converted in comparisons');
      t.deepEqual(
        [...snapshot.items()].map((item) => item.key),
        inOrder,
      );
      for (const [rank, name] of inOrder.entries()) t.is(snapshot.rank(name), rank);
      for (const name of some) t.is(index.delete(name)?.key, name);
      t.is(index.size, 0);
    }),
  );
});

test("the bytes of a leaf's objects are contiguous, and a removed object keeps its own copy", (t) => {
  const index = OrderedIndex.live(memory);
  index.load(Array.from({ length: 300 }, (_, i) => object(key(i), 'z'.repeat(100))));
  const list = new SnapshotList(index.snapshot(), 1, 0, 300, 0);
  const buffers = () => new Set([...index.snapshot().items()].map(({ json }) => json.buffer)).size;
  const chunks = [...list.chunks(stored, ',')];
  t.is(buffers(), chunks.length);
  t.true(chunks.length <= 4);
  const shared = index.get(key(5))!.json.buffer;
  const old = index.set(object(key(5), 'new'))!;
  t.not(old.json.buffer, shared);
  const gone = index.delete(key(6))!;
  t.not(gone.json.buffer, shared);
});

test('only blocks that copy the bytes of a store count towards the budget of blocks', (t) => {
  const budgets = new StorageMemory(new FakeClock());
  const listed = (source?: { sharedValues: boolean; memory: StorageMemory }) => {
    const index = OrderedIndex.live(budgets);
    for (let i = 0; i < 50; i++)
      index.set(StoredObject.fromValue(key(i), i + 1, 1, Buffer.from('{"metadata":{},"a":1}'), source));
    for (let times = 0; times < 2; times++) body(index.snapshot());
    return budgets.listBlocks.usedBytes;
  };
  t.is(listed(), 0, 'the objects lie in the block alone');
  t.true(listed({ sharedValues: true, memory: budgets }) > 0);
});

test('a full leaf lies in one block without a list, and no leaf becomes larger than the others when objects go', (t) => {
  const index = OrderedIndex.live(memory);
  for (let i = 0; i < 1000; i++) index.set(object(key(i)));
  const leaves = () => [...index.snapshot().slices(0, index.snapshot().size)].map(({ leaf }) => leaf);
  const full = leaves()[0]?.items ?? [];
  t.is(new Set(full.map(({ json }) => json.buffer)).size, 1);
  for (let i = 0; i < 1000; i++) if (i % 16 > 10) index.delete(key(i));
  t.true(leaves().length > 1);
  for (const { items } of leaves()) t.true(items.length <= full.length, `${items.length} objects`);
  for (let i = 0; i < 990; i++) index.delete(key(i));
  t.is(leaves().length, 1, 'small leaves are joined');
});

test('a leaf with many changes is compacted again without a list', (t) => {
  const index = OrderedIndex.live(memory);
  index.load(Array.from({ length: 100 }, (_, i) => object(key(i))));
  for (let round = 0; round < 10; round++) for (let i = 0; i < 100; i++) index.set(object(key(i), String(round)));
  const alone = [...index.snapshot().items()].filter(({ json }) => json.buffer.byteLength === json.byteLength).length;
  t.true(alone <= 52, `${alone} objects lie alone`);
});

test("objects whose bytes are a store's keep them, listed and changed, and read like any others", (t) => {
  const index = OrderedIndex.live(memory);
  const values = new Map<string, Buffer>();
  const put = (i: number, revision: number) => {
    const value = Buffer.from(`{"metadata":{"name":"n${i}"},"data":"${revision}"}`);
    values.set(key(i), value);
    index.set(StoredObject.fromValue(key(i), revision, 1, value, shared));
  };
  for (let i = 0; i < 300; i++) put(i, i + 1);
  const list = () =>
    Buffer.concat([...new SnapshotList(index.snapshot(), 1, 0, 300, 0).chunks(stored, ',')]).toString();
  list();
  for (let round = 0; round < 3; round++) for (let i = 0; i < 300; i += 7) put(i, 1000 + round);
  t.is(list(), [...index.snapshot().items()].map(({ json }) => json.toString()).join(','));
  for (const item of index.snapshot().items()) {
    const value = values.get(item.key) as Buffer;
    t.true(item.shared && item.holds(value));
    const { data, metadata } = item.value() as { data?: string; metadata?: { resourceVersion?: string } };
    t.is(data, metadata?.resourceVersion);
    const body = Buffer.alloc(item.byteLength);
    t.is(item.copyTo(body, 0), body.length);
    t.deepEqual(body, item.json);
    item.drop();
    t.deepEqual(body, item.json);
  }
});

test("a long list copies a store's bytes into buffers of the caller, and keeps copies only when it comes again soon", (t) => {
  const index = OrderedIndex.live(memory);
  for (let i = 0; i < 3000; i++) {
    index.set(StoredObject.fromValue(key(i), i + 1, 1, Buffer.from(`{"metadata":{"name":"n${i}"}}`), shared));
  }
  const lent: Buffer[] = [];
  const pieces = {
    take() {
      lent.push(Buffer.alloc(pieceBytes));
      return lent.at(-1) as Buffer;
    },
  };
  const page = () => new SnapshotList(index.snapshot(), 1, 0, index.size, 0);
  t.false(page().ready);
  const first = [...page().chunks(stored, ',', pieces)];
  const filled = first.map(({ buffer }) => buffer).filter((buffer) => lent.some((own) => own.buffer === buffer));
  t.true(lent.length > 0);
  t.deepEqual(
    filled,
    lent.map(({ buffer }) => buffer),
    'no buffer is in two pieces',
  );
  t.true(page().ready);
  lent.length = 0;
  const second = [...page().chunks(stored, ',', pieces)];
  t.is(lent.length, 0);
  t.true(Buffer.concat(second).equals(Buffer.concat(first)));
  t.is([...page().chunks(stored, ',')][1], second[1]);
  index.set(StoredObject.fromValue(key(0), 9000, 1, Buffer.from('{"metadata":{"name":"n0"}}'), shared));
  t.false(page().ready);
  t.true(new SnapshotList(index.snapshot(), 1, 0, 100, 0).ready, 'a short list is ready');
});

test('an unchanged leaf returns the same bytes again', (t) => {
  const index = OrderedIndex.live(memory);
  index.load(Array.from({ length: 400 }, (_, i) => object(key(i))));
  const chunks = () => [...new SnapshotList(index.snapshot(), 1, 0, index.size, 0).chunks(stored, ',')];
  const first = chunks();
  t.deepEqual(
    chunks()
      .slice(1)
      .map((chunk, i) => chunk === first[i + 1]),
    first.slice(1).map(() => true),
  );
  index.set(object(key(399), 'changed'));
  const second = chunks();
  t.is(second.filter((chunk, i) => i > 0 && chunk !== first[i]).length, 1);
});

test('a past snapshot that is derived from a snapshot does not change the live index', (t) => {
  const index = OrderedIndex.live(memory);
  index.load(Array.from({ length: 300 }, (_, i) => object(key(i))));
  const before = body(index.snapshot());
  const scratch = OrderedIndex.scratch(index.snapshot());
  for (let i = 0; i < 300; i += 2) scratch.delete(key(i));
  for (let i = 1; i < 300; i += 2) scratch.set(object(key(i), 'past'));
  t.is(scratch.size, 150);
  t.is(JSON.parse(`[${body(scratch.snapshot())}]`).length, 150);
  t.is(body(index.snapshot()), before);
  t.is(index.size, 300);
});

test('a snapshot counts its corrupt objects', (t) => {
  const index = OrderedIndex.live(memory);
  const bad = () => StoredObject.fromEntry({ key: key(1), value: Buffer.from('x'), modRevision: 1, createRevision: 1 });
  index.set(object(key(0)));
  index.set(bad());
  t.is(index.snapshot().corrupt, 1);
  index.set(bad());
  t.is(index.snapshot().corrupt, 1);
  index.set(object(key(1)));
  t.is(index.snapshot().corrupt, 0);
  index.set(bad());
  index.delete(key(1));
  t.is(index.snapshot().corrupt, 0);
});
