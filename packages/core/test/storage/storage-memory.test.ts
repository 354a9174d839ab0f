import test from 'ava';
import {
  type ObjectSource,
  type Pin,
  type Representation,
  type StorageBudgets,
  StorageMemory,
  StoredObject,
} from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime.ts';
import { SharedWatchEvent } from '../../src/storage/resource-watch.ts';
import { OrderedIndex } from '../../src/watch-cache/ordered-index.ts';

const value = Buffer.from(`{"metadata":{"labels":{"app":"a"}},"text":"${'x'.repeat(500)}"}`);

function sourceWith(budgets: Partial<StorageBudgets>, sharedValues = false): ObjectSource {
  return { sharedValues, memory: new StorageMemory(new FakeClock(), budgets) };
}

function object(key: string, source: ObjectSource | undefined): StoredObject {
  return StoredObject.fromValue(key, 1, 1, value, source);
}

/** How often the forms of two objects are encoded when each is read twice. */
function encodings(source: ObjectSource | undefined): number {
  let count = 0;
  const form: Representation = { id: 'form', encode: () => Buffer.alloc(100 + count++) };
  const objects = [object('/a', source), object('/b', source)];
  for (let round = 0; round < 2; round++) for (const one of objects) one.encoded(form);
  return count;
}

test('forms of objects are kept within their budget', (t) => {
  t.is(encodings(sourceWith({})), 2);
  t.is(encodings(sourceWith({ derivedFormsBytes: 150 })), 4);
  t.is(encodings(undefined), 4, 'without a source nothing is kept');
});

test('the JSON of store-owned objects counts as a form', (t) => {
  const jsonIsKept = (source: ObjectSource) => {
    const [a, b] = [object('/a', source), object('/b', source)];
    const first = a.json;
    b.json.toString();
    return a.json === first;
  };
  t.true(jsonIsKept(sourceWith({}, true)));
  t.false(jsonIsKept(sourceWith({ derivedFormsBytes: 700 }, true)));
});

test('frames of watch events are kept within their budget', (t) => {
  const frameIsKept = (source: ObjectSource) => {
    const form = { id: 'frame', encode: () => Buffer.alloc(100) };
    const events = ['/a', '/b'].map((key) => new SharedWatchEvent('ADDED', object(key, source)));
    const first = events.map((event) => event.encoded(form))[0];
    return events[0]?.encoded(form) === first;
  };
  t.true(frameIsKept(sourceWith({})));
  t.false(frameIsKept(sourceWith({ watchFramesBytes: 150 })));
});

/** A live index of two leaves with objects that a store owns. */
function indexOfTwo(budgets: Partial<StorageBudgets>): OrderedIndex {
  const source = sourceWith(budgets, true);
  const index = OrderedIndex.live(source.memory as StorageMemory);
  index.load(Array.from({ length: 200 }, (_, i) => object(`/x${1000 + i}`, source)));
  return index;
}

function leaves(budgets: Partial<StorageBudgets>) {
  const index = indexOfTwo(budgets);
  return [...index.snapshot().slices(0, index.size)].map(({ leaf }) => leaf);
}

test('list blocks of store-owned objects are kept within their budget', (t) => {
  const blockIsKept = (budgets: Partial<StorageBudgets>) => {
    const [first, second] = leaves(budgets);
    const block = first?.blockBytes();
    second?.blockBytes();
    return first?.block === block;
  };
  t.true(blockIsKept({}));
  t.false(blockIsKept({ listBlocksBytes: 50_000 }));
});

test('positions of selected values are kept within their budget', (t) => {
  const pin: Pin = { attribute: 'label app', value: 'a', read: (one) => one.value().metadata?.labels?.['app'] };
  const positionsAreKept = (budgets: Partial<StorageBudgets>) => {
    const found = leaves(budgets);
    // The first use only notes the attribute, the second one indexes it.
    for (let round = 0; round < 2; round++) for (const leaf of found) leaf.pinned(pin);
    return found[0]?.pinned(pin) !== undefined;
  };
  t.true(positionsAreKept({}));
  t.false(positionsAreKept({ selectorIndexesBytes: 1000 }));
});

test('selected objects are kept until their part of the index changes', (t) => {
  const selectionOf = (index: OrderedIndex) => [...index.snapshot().parts(0, 200)][0]?.selections;
  const isKept = (change?: (index: OrderedIndex) => void) => {
    const index = indexOfTwo({});
    const objects = [...index.snapshot().items()];
    const selections = selectionOf(index);
    selections?.keep('all', objects);
    change?.(index);
    return selections?.get('all') === objects && selectionOf(index)?.get('all') === objects;
  };
  t.true(isKept());
  t.false(isKept((index) => index.delete('/x1000')));
});

test('selected objects leave the memory when the budget is exceeded', (t) => {
  const source = sourceWith({ selectorIndexesBytes: 2500 }, true);
  const memory = source.memory as StorageMemory;
  const selections = ['/a', '/b'].map((prefix) => {
    const index = OrderedIndex.live(memory);
    index.load(Array.from({ length: 200 }, (_, i) => object(`${prefix}${1000 + i}`, source)));
    const state = index.snapshot();
    const kept = [...state.parts(0, 200)][0]?.selections;
    kept?.keep('all', [...state.items()]);
    return kept;
  });
  t.is(selections[0]?.get('all'), undefined, 'the one used longest ago');
  t.is(selections[1]?.get('all')?.length, 200);
  t.true(memory.selectorIndexes.usedBytes <= 2500);
});
