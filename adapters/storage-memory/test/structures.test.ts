import { Random } from '@keelson/conformance';
import test from 'ava';
import { ExpiryQueue } from '../src/expirer.ts';
import { OrderedMap } from '../src/ordered-map.ts';
import { History, Version } from '../src/versioned-state.ts';

const seed = Number(process.env['KEELSON_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

function scan(
  map: OrderedMap<number>,
  start: string,
  exclusive: boolean,
  end: string,
  limit = Number.POSITIVE_INFINITY,
) {
  const found: [string, number][] = [];
  map.scan(start, exclusive, end, (value, key) => {
    found.push([key, value]);
    return found.length < limit;
  });
  return found;
}

test('the ordered map equals a sorted map while it grows and shrinks', (t) => {
  t.log(`KEELSON_SEED=${seed}`);
  const random = new Random(seed);
  const map = new OrderedMap<number>();
  const model = new Map<string, number>();
  const key = () => `k${random.below(6000)}`;
  for (const [steps, deleting] of [
    [8000, 0.1],
    [8000, 0.9],
    [4000, 0.5],
    [9000, 0.98],
  ] as const) {
    for (let i = 0; i < steps; i++) {
      const k = key();
      if (random.chance(deleting)) {
        if (map.delete(k) !== model.delete(k)) return t.fail(`delete ${k}`);
      } else {
        map.set(k, i);
        model.set(k, i);
      }
    }
    const sorted = [...model].sort(([a], [b]) => (a < b ? -1 : 1));
    t.is(map.size, model.size);
    t.deepEqual(scan(map, '', false, '\uffff'), sorted);
    for (let i = 0; i < 50; i++) {
      const [start, end, exclusive] = [key(), key(), random.chance(0.5)];
      const expected = sorted.filter(([k]) => (exclusive ? k > start : k >= start) && k < end);
      t.deepEqual(scan(map, start, exclusive, end), expected);
      t.deepEqual(scan(map, start, exclusive, end, 7), expected.slice(0, 7));
      t.is(map.get(start), model.get(start));
    }
  }
});

test('the ordered map can be emptied and reused', (t) => {
  const map = new OrderedMap<number>();
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 1000; i++) map.set(String(i).padStart(4, '0'), i);
    for (let i = round % 2 === 0 ? 0 : 999; i >= 0 && i < 1000; i += round % 2 === 0 ? 1 : -1)
      map.delete(String(i).padStart(4, '0'));
    t.is(map.size, 0);
    t.deepEqual(scan(map, '', false, '\uffff'), []);
  }
});

test('history returns pushed versions by revision, over many chunks', (t) => {
  const history = new History(2);
  for (let revision = 2; revision < 5000; revision++)
    history.push(new Version('/a', '/a', revision, undefined, undefined, revision));
  t.is(history.get(1), undefined);
  t.is(history.get(5000), undefined);
  for (let revision = 2; revision < 4500; revision++) {
    if (history.shift()?.revision !== revision) return t.fail(`shift at ${revision}`);
    if (history.get(revision) !== undefined) return t.fail(`still there: ${revision}`);
    if (history.get(4999)?.revision !== 4999 || history.get(revision + 1)?.revision !== revision + 1)
      return t.fail(`lost at ${revision}`);
  }
  t.is(history.first, 4500);
  t.is(history.next, 5000);
});

test('the expiry queue returns times in order', (t) => {
  t.log(`KEELSON_SEED=${seed}`);
  const random = new Random(seed);
  const queue = new ExpiryQueue();
  const times = Array.from({ length: 500 }, () => random.below(100));
  for (const at of times) queue.push({ at, ordered: '/a', revision: 1 });
  t.deepEqual(
    times.map(() => queue.shift()?.at),
    times.sort((a, b) => a - b),
  );
  t.is(queue.shift(), undefined);
});
