import test from 'ava';
import { type SharedPart, StorageMemory, StoredObject } from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime.ts';
import type { PartForm } from '../../src/storage/resource-storage.ts';
import { KeptSelections, Leaf, LeafValues, largestPart, leafCapacity } from '../../src/watch-cache/leaf.ts';

/** An object whose bytes belong to the store when it has a source. */
function object(i: number, memory?: StorageMemory, text = 'x'): StoredObject {
  const value = Buffer.from(`{"metadata":{},"text":${JSON.stringify(text)}}`);
  const source = memory && { sharedValues: true, memory };
  return StoredObject.fromValue(`/k/${String(i).padStart(4, '0')}`, i + 1, 1, value, source);
}

const objects = (count: number, memory?: StorageMemory) => Array.from({ length: count }, (_, i) => object(i, memory));
const memoryOf = (budgets = {}) => new StorageMemory(new FakeClock(), budgets);
const pinOf = (attribute: string, value: string) => ({
  attribute,
  value,
  read: ({ revision }: StoredObject) => (revision === 1 ? undefined : revision % 2 === 0 ? 'even' : 'odd'),
});

test('a leaf of store-owned objects has a block when a list comes a second time, and counts it in the budget', (t) => {
  const memory = memoryOf();
  const leaf = new Leaf({}, objects(4, memory), memory);
  t.false(leaf.blockWorth);
  leaf.listed();
  t.is(memory.listBlocks.usedBytes, 0);
  t.true(leaf.blockWorth);
  const block = leaf.blockBytes();
  t.is(block?.toString(), leaf.items.map(({ json }) => `,${json.toString()}`).join(''));
  t.is(memory.listBlocks.usedBytes, block?.length ?? 0);
  t.is(leaf.blockBytes(), block);
  t.is(memory.listBlocks.usedBytes, block?.length ?? 0);
  leaf.drop();
  t.is(leaf.block, undefined, 'the store has the bytes as well');
});

/** Objects as their keys, separated by blanks. */
const keys: PartForm = {
  id: 'keys',
  *pieces(objects, isFirst) {
    for (const [index, { key }] of objects.entries()) yield Buffer.from(isFirst && index === 0 ? key : ` ${key}`);
  },
};
const textOf = (part: SharedPart | undefined) => part && Buffer.concat([...part.pieces()]).toString();

test('the part of a leaf in a form is the same until an object changes', (t) => {
  const leaf = new Leaf({}, objects(3), memoryOf());
  const part = leaf.part(keys, false);
  t.is(textOf(part), ' /k/0000 /k/0001 /k/0002');
  t.is(leaf.part(keys, false), part);
  const first = leaf.part(keys, true);
  t.is(textOf(first), '/k/0000 /k/0001 /k/0002');
  t.not(first?.content, part?.content);
  t.not(leaf.part({ ...keys, id: 'other' }, false)?.content, part?.content);
  leaf.items[2] = object(7);
  leaf.changed(leaf.items[2]);
  t.not(leaf.part(keys, false)?.content, part?.content);
  t.is(textOf(leaf.part(keys, false)), ' /k/0000 /k/0001 /k/0007');
});

test('a large leaf, and one with a corrupt object, have no parts', (t) => {
  const large = object(1, undefined, 'x'.repeat(largestPart));
  t.is(new Leaf({}, [object(0), large], memoryOf()).part(keys, false), undefined);
  const corrupt = StoredObject.fromEntry({ key: '/k/x', value: Buffer.from('x'), createRevision: 1, modRevision: 1 });
  t.is(new Leaf({}, [object(0), corrupt], memoryOf()).part(keys, false), undefined);
});

test('a block in use stays when the budget drops others', (t) => {
  const size = new Leaf({}, objects(4), memoryOf()).blockBytes()?.length as number;
  const memory = memoryOf({ listBlocksBytes: size * 2 });
  const [first, second, third] = Array.from({ length: 3 }, () => new Leaf({}, objects(4, memory), memory));
  first?.blockBytes();
  second?.blockBytes();
  first?.blockBytes();
  third?.blockBytes();
  t.deepEqual(
    [first, second, third].map((leaf) => leaf?.block !== undefined),
    [true, false, true],
  );
});

test('a leaf that leaves the live index releases its block and its positions, and keeps none afterwards', (t) => {
  const memory = memoryOf();
  const leaf = new Leaf({}, objects(4, memory), memory);
  leaf.blockBytes();
  for (let times = 0; times < 2; times++) leaf.pinned(pinOf('parity', 'odd'));
  t.true(memory.selectorIndexes.usedBytes > 0);
  leaf.retire();
  t.is(leaf.block, undefined);
  t.is(memory.listBlocks.usedBytes, 0);
  t.is(memory.selectorIndexes.usedBytes, 0);
  leaf.listed();
  t.false(leaf.blockWorth);
  t.true((leaf.blockBytes()?.length ?? 0) > 0, 'a snapshot still reads it');
  t.is(leaf.block, undefined);
  t.is(leaf.pinned(pinOf('parity', 'odd')), undefined);
  t.is(memory.listBlocks.usedBytes, 0);
});

test('a change of a leaf releases its block and its positions', (t) => {
  const memory = memoryOf();
  for (const change of ['grown', 'changed'] as const) {
    const leaf = new Leaf({}, objects(4, memory), memory);
    leaf.blockBytes();
    for (let times = 0; times < 2; times++) leaf.pinned(pinOf('parity', 'odd'));
    leaf[change]();
    t.is(leaf.block, undefined);
    t.is(memory.listBlocks.usedBytes, 0);
    t.is(memory.selectorIndexes.usedBytes, 0);
  }
});

test('objects that belong to the leaf alone stay in its block, whatever the budget', (t) => {
  const leaf = new Leaf({}, objects(4), memoryOf());
  t.true(leaf.blockWorth);
  const block = leaf.blockBytes();
  leaf.drop();
  t.is(leaf.block, block);
  t.is(leaf.scattered, 0);
});

test('a leaf is copied into one block when more than 16 and more than half of its objects have changed', (t) => {
  const small = new Leaf({}, objects(20), memoryOf());
  small.layOut();
  for (let changes = 1; changes <= 17; changes++) {
    small.changed(object(1));
    t.is(small.block === undefined, changes < 17, `after ${changes} changes`);
  }
  t.is(small.scattered, 0);

  const large = new Leaf({}, objects(leafCapacity), memoryOf());
  large.layOut();
  for (let changes = 1; changes <= leafCapacity / 2; changes++) large.changed(object(1));
  t.is(large.block, undefined);
  large.changed(object(1));
  t.not(large.block, undefined);

  const memory = memoryOf();
  const shared = new Leaf({}, objects(20, memory), memory);
  for (let changes = 0; changes < 40; changes++) shared.changed(object(1, memory));
  t.is(shared.block, undefined, 'bytes of the store stay where they are');
});

test('a leaf without a block: too many bytes, or a corrupt object', (t) => {
  const half = 'x'.repeat(600_000);
  const large = new Leaf({}, [object(0, undefined, half), object(1, undefined, half)], memoryOf());
  t.is(large.blockBytes(), undefined);
  const corrupt = { key: '/k/c', value: Buffer.from('x'), modRevision: 1, createRevision: 1 };
  t.is(new Leaf({}, [object(0), StoredObject.fromEntry(corrupt)], memoryOf()).blockBytes(), undefined);
});

test('positions by value are determined for the second list, and counted in the budget', (t) => {
  const { selectorIndexes } = memoryOf();
  const values = new LeafValues(selectorIndexes);
  const items = objects(6);
  t.is(values.positions(pinOf('parity', 'odd'), items), undefined);
  t.is(selectorIndexes.usedBytes, 0);
  t.deepEqual(values.positions(pinOf('parity', 'odd'), items), [2, 4]);
  t.deepEqual(values.positions(pinOf('parity', 'even'), items), [1, 3, 5]);
  t.deepEqual(values.positions(pinOf('parity', 'none'), items), []);
  t.is(selectorIndexes.usedBytes, 6 * 8 + 2 * 96);
  t.is(values.positions(pinOf('other', 'odd'), items), undefined, 'each attribute has positions of its own');
  values.drop();
  t.is(selectorIndexes.usedBytes, 0);
  t.is(values.positions(pinOf('parity', 'odd'), items), undefined);
  values.positions(pinOf('parity', 'odd'), items);
  t.is(selectorIndexes.usedBytes, 6 * 8 + 2 * 96);
});

test('positions in use stay when the budget drops others', (t) => {
  const { selectorIndexes } = memoryOf({ selectorIndexesBytes: 2 * (6 * 8 + 2 * 96) });
  const [first, second, third] = Array.from({ length: 3 }, () => new LeafValues(selectorIndexes));
  const use = (values: LeafValues | undefined) => values?.positions(pinOf('parity', 'odd'), objects(6));
  for (const values of [first, first, second, second, first, third, third]) use(values);
  t.not(use(first), undefined);
  t.is(use(second), undefined);
});

test('kept selections are counted once, stay while they are used, and are released with their node', (t) => {
  const { selectorIndexes } = memoryOf({ selectorIndexesBytes: 2 * (128 + 3 * 8) });
  const [first, second, third] = Array.from({ length: 3 }, () => new KeptSelections(selectorIndexes));
  const selected = objects(3);
  t.is(first?.get('p'), undefined);
  t.is(selectorIndexes.usedBytes, 0);
  first?.keep('p', selected);
  first?.keep('p', selected);
  t.is(selectorIndexes.usedBytes, 128 + 3 * 8);
  second?.keep('p', selected);
  t.is(first?.get('p'), selected);
  third?.keep('p', selected);
  t.is(second?.get('p'), undefined, 'the least recently used');
  t.is(first?.get('p'), selected);
  first?.forget();
  t.is(first?.get('p'), undefined);
  t.is(selectorIndexes.usedBytes, 128 + 3 * 8);
  second?.keep('p', objects(1));
  t.is(selectorIndexes.usedBytes, 2 * 128 + 4 * 8, 'a dropped selection has no bytes left');
});
