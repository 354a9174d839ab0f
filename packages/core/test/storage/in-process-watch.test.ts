import test from 'ava';
import fc from 'fast-check';
import {
  type Change,
  type ChangeLog,
  checkKey,
  compareKeys,
  OrderedRange,
  orderedForm,
  prefixRange,
  type WatchBatch,
  WatchHub,
} from '../../src/storage-adapter.ts';

const everything = { start: '', end: '\u{10ffff}' };
const anyText = fc.string({ unit: 'binary', minLength: 0, maxLength: 8 });
/** Text around the places where UTF-16 and UTF-8 order differ. */
const edgeText = fc.string({
  unit: fc.constantFrom('a', '/', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}', '\u0001'),
  maxLength: 6,
});

test('keys compare as their UTF-8 bytes do', (t) => {
  for (const text of [anyText, edgeText]) {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const bytes = Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));
        const [x, y] = [orderedForm(a), orderedForm(b)];
        return Math.sign(compareKeys(a, b)) === bytes && (x < y ? -1 : x > y ? 1 : 0) === bytes;
      }),
      { numRuns: 2000 },
    );
  }
  t.is(orderedForm('/core/pods/ns/name'), '/core/pods/ns/name');
});

test('the range of a prefix covers exactly what begins with it', (t) => {
  fc.assert(
    fc.property(
      edgeText.filter((prefix) => [...prefix].some((char) => char !== '\u{10ffff}')),
      edgeText,
      fc.boolean(),
      (prefix, other, below) => {
        const key = below ? prefix + other : other;
        const range = prefixRange(prefix);
        return new OrderedRange(range).covers(orderedForm(key)) === key.startsWith(prefix);
      },
    ),
    { numRuns: 3000 },
  );
  t.throws(() => prefixRange(''), { instanceOf: RangeError });
  t.throws(() => prefixRange('\u{10ffff}'), { instanceOf: RangeError });
});

test('what is no key is InvalidKey', (t) => {
  for (const key of ['', '\0', 'a\0', '\ud800', 'a\udc00b', 'k'.repeat(1025), 'é'.repeat(513)]) {
    t.throws(() => checkKey(key), { code: 'InvalidKey' });
  }
  for (const key of ['a', 'k'.repeat(1024), 'é'.repeat(512), '\u{1f600}'.repeat(256), '__proto__'])
    t.notThrows(() => checkKey(key));
  t.throws(() => new OrderedRange({ start: '\ud800', end: 'b' }), { code: 'InvalidKey' });
  t.throws(() => new OrderedRange({ start: 'a', end: 'b'.repeat(1025) }), { code: 'InvalidKey' });
});

/** A log of one change per revision, ten to a batch. */
class TestLog implements ChangeLog {
  head = 1;
  reads = 0;
  broken: unknown;

  read(after: number, range: OrderedRange): WatchBatch {
    this.reads++;
    if (this.broken !== undefined) throw this.broken;
    const changes: Change[] = [];
    const frontier = Math.min(this.head, after + 10);
    for (let revision = after + 1; revision <= frontier; revision++) {
      const key = `/${revision}`;
      if (range.covers(key)) changes.push({ type: 'delete', revision, key, entry: undefined });
    }
    return { changes, frontier };
  }
}

test('a watch with many unread events yields to other work of the process', async (t) => {
  const log = new TestLog();
  const hub = new WatchHub(log);
  log.head = 10_001;
  let turns = 0;
  let running = true;
  const count = () => {
    turns++;
    if (running) setImmediate(count);
  };
  setImmediate(count);
  let seen = 0;
  for await (const batch of hub.open(everything, { after: 1 }, 0)) {
    seen += batch.changes.length;
    if (batch.frontier === log.head) break;
  }
  running = false;
  t.is(seen, 10_000);
  t.true(turns > 50, `${turns} turns while 1000 batches were read`);
});

test('streams that wait are woken once for all the changes of a turn, and others not at all', async (t) => {
  const log = new TestLog();
  const hub = new WatchHub(log);
  const streams = Array.from({ length: 3 }, () => hub.open(everything, { after: 1 }, 0));
  const idle = hub.open(everything, { after: 1 }, 0);
  const pulls = streams.map((stream) => stream[Symbol.asyncIterator]().next());
  for (let i = 0; i < 5; i++) {
    log.head++;
    hub.wake();
  }
  for (const { value } of await Promise.all(pulls)) t.is((value as WatchBatch).changes.length, 5);
  t.is(log.reads, 3);
  t.is(idle.frontier, 1);
  t.is(hub.size, 4);
  hub.close();
  t.is(hub.size, 0);
});

test('pulls sent without waiting are answered in order', async (t) => {
  const log = new TestLog();
  const hub = new WatchHub(log);
  const iterator = hub.open(everything, { after: 1 }, 0)[Symbol.asyncIterator]();
  const pulls = Array.from({ length: 4 }, () => iterator.next());
  log.head = 25;
  hub.wake();
  const frontiers = (await Promise.all(pulls.slice(0, 3))).map(({ value }) => (value as WatchBatch).frontier);
  t.deepEqual(frontiers, [11, 21, 25]);
  await iterator.return?.();
  t.true((await pulls[3])?.done);
});

test('a log that cannot be read ends its streams with Unavailable, once', async (t) => {
  const log = new TestLog();
  const hub = new WatchHub(log);
  const stream = hub.open(everything, { after: 1 }, 0);
  const iterator = stream[Symbol.asyncIterator]();
  const advancing = t.throwsAsync(stream.advanceTo(5), { code: 'Unavailable' });
  log.head = 5;
  log.broken = new Error('disk on fire');
  const error = await t.throwsAsync(iterator.next(), { code: 'Unavailable' });
  t.is(error.cause, log.broken);
  await advancing;
  t.true((await iterator.next()).done);
  t.is(hub.size, 0);
});

test('a stream removes its abort listener when it ends', async (t) => {
  const hub = new WatchHub(new TestLog());
  const { signal } = new AbortController();
  let listeners = 0;
  const counted = new Proxy(signal, {
    get(target, name) {
      if (name === 'addEventListener') listeners++;
      if (name === 'removeEventListener') listeners--;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const stream = hub.open(everything, { after: 1, signal: counted }, 0);
  const advancing = t.throwsAsync(stream.advanceTo(9, { signal: counted }), { code: 'Closed' });
  t.is(listeners, 1);
  await stream.close();
  await advancing;
  t.is(listeners, 0);
});
