import test from 'ava';
import fc from 'fast-check';
import { type ObjectPredicate, StorageMemory, StoredObject } from '../../src/internal.ts';
import { FakeClock } from '../../src/runtime.ts';
import { EventWindow, KindEvent, PastStates, type WindowLimits } from '../../src/watch-cache/event-window.ts';
import { OrderedIndex } from '../../src/watch-cache/ordered-index.ts';

const limits: WindowLimits = {
  maxEvents: 1000,
  maxBytes: 1_000_000,
  maxTotalBytes: 1e9,
  maxAgeMs: 60_000,
  minEvents: 2,
};

const memory = new StorageMemory(new FakeClock());

function object(key: string, revision: number, text = ''): StoredObject {
  return StoredObject.fromValue(key, revision, 1, Buffer.from(JSON.stringify({ metadata: {}, text })));
}

function event(revision: number, at = 0, text = ''): KindEvent {
  return new KindEvent(revision, '/k/x', object('/k/x', revision), object('/k/x', revision - 1, text), at);
}

test('a window begins where it was opened and finds events by revision', (t) => {
  const window = new EventWindow(10, limits, { bytes: 0 });
  t.is(window.startRevision, 10);
  t.is(window.after(10), window.endSequence);
  for (const revision of [12, 15, 20]) window.push(event(revision));
  t.is(window.startRevision, 10);
  t.deepEqual(
    [10, 11, 12, 14, 15, 19, 20, 99].map((revision) => window.at(window.after(revision))?.revision),
    [12, 12, 15, 15, 20, 20, undefined, undefined],
  );
});

test('a window keeps at most the allowed number of events, and their sequence numbers do not change', (t) => {
  const window = new EventWindow(1, { ...limits, maxEvents: 10 }, { bytes: 0 });
  for (let revision = 2; revision < 3000; revision++) {
    window.push(event(revision));
    t.is(window.at(window.endSequence - 1)?.revision, revision);
    t.is(window.endSequence, revision - 1);
    t.is(window.at(window.firstSequence)?.revision, window.startRevision + 1);
    t.true(window.endSequence - window.firstSequence <= 10);
  }
  t.is(window.at(window.firstSequence - 1), undefined);
  t.is(window.after(0), window.firstSequence);
});

test('a window keeps no more bytes than allowed, but always the newest event', (t) => {
  const window = new EventWindow(1, { ...limits, maxBytes: 10_000 }, { bytes: 0 });
  for (let revision = 2; revision < 100; revision++) {
    window.push(event(revision, 0, 'x'.repeat(revision % 7 === 0 ? 50_000 : 500)));
    t.true(window.heldBytes <= 10_000 || window.endSequence - window.firstSequence === 1);
  }
  t.is(window.at(window.endSequence - 1)?.revision, 99);
});

test('all windows together stay below their limit; the largest are trimmed first, to a fair share', (t) => {
  const total = { bytes: 0 };
  const shared = { ...limits, maxTotalBytes: 100_000 };
  const [quiet, busy] = [new EventWindow(1, shared, total), new EventWindow(1, shared, total)];
  for (let revision = 2; revision < 60; revision++) quiet.push(event(revision, 0, 'x'.repeat(1000)));
  const before = quiet.heldBytes;
  for (let revision = 60; revision < 400; revision++) busy.push(event(revision, 0, 'x'.repeat(1000)));
  t.is(quiet.heldBytes, before);
  t.true(total.bytes <= 100_000);
  for (let revision = 400; revision < 600; revision++)
    new EventWindow(1, shared, total).push(event(revision, 0, 'x'.repeat(1000)));
  t.true(total.bytes > 100_000);
  for (let revision = 600; revision < 620; revision++) busy.push(event(revision, 0, 'x'.repeat(100)));
  t.true(busy.heldBytes <= 100_000 / 16 && busy.heldBytes > 3000, `${busy.heldBytes} bytes are left`);
  busy.discard();
  quiet.discard();
  t.is(busy.heldBytes, 0);
});

test('events are removed by age, except the newest few', (t) => {
  const window = new EventWindow(1, { ...limits, minEvents: 3 }, { bytes: 0 });
  for (let revision = 2; revision < 12; revision++) window.push(event(revision, revision));
  window.push(event(12, 1_000_000));
  t.is(window.endSequence - window.firstSequence, 3);
  t.is(window.startRevision, 9);
});

test('past events are prepended while there is room, and sequence numbers do not change', (t) => {
  const window = new EventWindow(100, { ...limits, maxEvents: 6 }, { bytes: 0 });
  window.push(event(105));
  window.push(event(110));
  const sequence = window.after(105);
  t.true(window.prepend(50, [event(60), event(70), event(101)]), 'what the window has already is left out');
  t.is(window.startRevision, 50);
  t.is(window.after(105), sequence);
  t.deepEqual(
    [50, 60, 69, 70, 100, 105].map((revision) => window.at(window.after(revision))?.revision),
    [60, 70, 70, 105, 105, 110],
  );
  t.false(window.prepend(10, [event(11), event(12), event(13)]), 'no room');
  t.is(window.startRevision, 50);
  for (let revision = 111; revision < 120; revision++) window.push(event(revision));
  t.is(window.endSequence - window.firstSequence, 6);
  t.is(window.at(window.firstSequence)?.revision, window.startRevision + 1);
});

test('past events that are prepended use memory of the window and of all windows', (t) => {
  const total = { bytes: 0 };
  const window = new EventWindow(100, { ...limits, maxBytes: 5_000 }, total);
  const past = [event(60, 0, 'x'.repeat(1000)), event(70, 0, 'x'.repeat(1000))];
  const bytes = past.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
  t.true(window.prepend(50, past));
  t.is(window.heldBytes, bytes);
  t.is(total.bytes, bytes);
  t.false(window.prepend(10, [event(20, 0, 'x'.repeat(4000))]), 'no room');
  window.discard();
  t.is(total.bytes, 0);
});

test('past events are prepended to a small window even when all windows together are at their limit', (t) => {
  const total = { bytes: 100_000 };
  const small = new EventWindow(100, { ...limits, maxBytes: 50_000, maxTotalBytes: 64_000 }, total);
  t.true(small.prepend(50, [event(60, 0, 'x'.repeat(1000))]));
  t.false(small.prepend(10, [event(20, 0, 'x'.repeat(4000))]), 'more than a sixteenth of the limit');
});

test('readers with the same view of an event receive the same object', (t) => {
  const all: ObjectPredicate = { everything: true, id: '', matches: () => true };
  const only = (id: string, ...revisions: number[]): ObjectPredicate => ({
    everything: false,
    id,
    matches: (candidate) => revisions.includes(candidate.revision),
  });
  const change = event(5);
  t.is(change.eventFor(all)?.type, 'MODIFIED');
  t.is(change.eventFor(all), change.eventFor(only('both', 4, 5)));
  t.is(change.eventFor(only('enters', 5))?.type, 'ADDED');
  const left = change.eventFor(only('leaves', 4));
  t.is(left?.type, 'DELETED');
  t.is(left?.object.revision, 5);
  t.is(left, change.eventFor(only('leaves too', 4)));
  t.is(change.eventFor(only('neither')), undefined);
});

test('every past state inside the window can be read, in any order, while changes continue', (t) => {
  const script = fc.array(fc.record({ key: fc.nat(30), remove: fc.boolean(), ask: fc.boolean(), back: fc.nat() }), {
    minLength: 1500,
    maxLength: 2600,
    size: 'max',
  });
  fc.assert(
    fc.property(script, fc.constantFrom(5, 100, 1_000_000), (steps, maxEvents) => {
      const clock = new FakeClock();
      const index = OrderedIndex.live(memory);
      const window = new EventWindow(1, { ...limits, maxBytes: 1e9, maxEvents }, { bytes: 0 });
      const past = new PastStates(index, window, clock);
      const states = [''];
      let revision = 1;
      for (const step of steps) {
        const key = `/k/${step.key}`;
        if (step.remove && index.get(key) === undefined) continue;
        revision++;
        past.beforeEvent();
        const next = step.remove ? undefined : object(key, revision);
        const prev = next === undefined ? index.delete(key) : index.set(next);
        window.push(new KindEvent(revision, key, next, prev, clock.monotonic()));
        states[revision - 1] = [...index.snapshot().items()].map((item) => `${item.key}@${item.revision}`).join();
        if (!step.ask) continue;
        const asked = 1 + (step.back % revision);
        const state = past.at(asked);
        if (state === undefined) {
          if (asked >= window.startRevision) return false;
        } else if ([...state.items()].map((item) => `${item.key}@${item.revision}`).join() !== states[asked - 1])
          return false;
      }
      return true;
    }),
    { numRuns: 12 },
  );
  t.pass();
});

test('a retained past state remains readable after its events have left the window', (t) => {
  const clock = new FakeClock();
  const index = OrderedIndex.live(memory);
  const window = new EventWindow(1, { ...limits, maxEvents: 1 }, { bytes: 0 });
  const past = new PastStates(index, window, clock);
  const put = (revision: number) => {
    past.beforeEvent();
    const next = object('/k/x', revision);
    window.push(new KindEvent(revision, '/k/x', next, index.set(next), 0));
  };
  put(2);
  past.remember(2, index.snapshot());
  for (let revision = 3; revision < 10; revision++) put(revision);
  t.is(past.at(2)?.get('/k/x')?.revision, 2);
  t.is(past.at(3), undefined);
  clock.advance(300_001);
  for (let revision = 10; revision < 1100; revision++) put(revision);
  t.is(past.at(2), undefined, 'not for ever');
});

test('of more retained states than allowed the least recently used goes', (t) => {
  const index = OrderedIndex.live(memory);
  const past = new PastStates(index, new EventWindow(100, limits, { bytes: 0 }), new FakeClock());
  const state = index.snapshot();
  for (let revision = 1; revision <= 16; revision++) past.remember(revision, state);
  past.remember(1, state);
  t.is(past.at(2), state);
  past.remember(17, state);
  past.remember(18, state);
  t.deepEqual(
    [1, 2, 3, 4, 5, 18].map((revision) => past.at(revision) !== undefined),
    [true, true, false, false, true, true],
  );
});
