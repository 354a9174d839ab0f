import { getEventListeners } from 'node:events';
import test from 'ava';
import { type KubeObject, StorageError } from '../../src/index.ts';
import { type ObjectPredicate, StorageMemory, StoredObject } from '../../src/internal.ts';
import { type Clock, FakeClock } from '../../src/runtime.ts';
import { SharedWatchEvent } from '../../src/storage/resource-watch.ts';
import type { Revision } from '../../src/storage-adapter.ts';
import { CachedWatch, type WatchHost } from '../../src/watch-cache/cached-watch.ts';
import { InitialState } from '../../src/watch-cache/event-source.ts';
import { KindEvent } from '../../src/watch-cache/event-window.ts';
import { OrderedIndex } from '../../src/watch-cache/ordered-index.ts';
import { FrontierWaiters, WakeQueue } from '../../src/watch-cache/store-feed.ts';
import { type WaitingWatch, WatchScopes, WatchView } from '../../src/watch-cache/watch-scopes.ts';

const all: ObjectPredicate = { everything: true, id: '', matches: () => true };

function object(key: string, revision: number): StoredObject {
  return StoredObject.fromValue(key, revision, 1, Buffer.from('{"metadata":{}}'));
}

const added = (revision: Revision) => new SharedWatchEvent('ADDED', object('/core/pods/a/x', revision));
const watcher = (onWake = () => {}): WaitingWatch => ({ waiting: false, wakeIfReadable: onWake });
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('the initial state of a watch ends with its bookmark, or when the watch is closed', (t) => {
  const index = OrderedIndex.live(new StorageMemory(new FakeClock()));
  for (const name of ['x', 'y', 'z']) index.set(object(`/core/pods/a/${name}`, 1));
  const source = () => new InitialState(index.snapshot(), 0, 3, all, 7, added(7));
  const whole = source();
  t.deepEqual([whole.take(3).length, whole.revision, whole.finished], [3, 7, false]);
  t.deepEqual([whole.take(3).length, whole.finished], [1, true]);
  const closed = source();
  t.deepEqual([closed.take(1).length, closed.revision], [1, 0]);
  closed.dispose();
  t.is(closed.take(10).filter(({ type }) => type === 'ADDED').length, 1, 'the bookmark at most');
});

test('readers at the same position of a view receive the same array', (t) => {
  const view = new WatchView(all);
  const place = view.join();
  view.join();
  for (let revision = 1; revision <= 5; revision++) view.append(added(revision));
  const piece = view.piece(place, 3);
  t.is(piece.length, 3);
  t.is(view.piece(place, 3), piece);
  t.is(view.piece(place, 10).length, 5);
  view.append(added(6));
  t.is(view.piece(place, 10).length, 6, 'a longer log is not hidden by what was read before');
  t.is(view.piece(place + 6, 10).length, 0);
});

test('a view keeps only the events that a member has not read yet', (t) => {
  const view = new WatchView(all);
  const [fast, slow] = [watcher(), watcher()];
  const start = view.join();
  view.join();
  view.wait(fast);
  view.append(added(1));
  view.takeWaiting();
  view.wait(fast);
  view.append(added(2));
  t.is(view.piece(start, 10).length, 2, 'the slow one has read nothing yet');
  view.takeWaiting();
  view.wait(fast);
  view.wait(slow);
  view.append(added(3));
  view.append(added(4));
  t.is(view.start, start + 2, 'both had read the first two');
  t.is(view.piece(start + 2, 10).length, 2);
  view.trim(3);
  t.is(view.start, start + 3);
});

test('the revision of a watch is that of the cache only when it has read everything and has not failed', (t) => {
  const view = new WatchView(all);
  let forgotten = 0;
  const host = { window: { startRevision: 0 }, revision: 5, forget: () => void forgotten++ };
  const open = () => new CachedWatch(host as unknown as WatchHost, '/core/pods/', view, undefined);
  const [watch, other] = [open(), open()];
  t.is(watch.revision, 5);
  host.revision = 7;
  t.is(watch.revision, 7);
  view.append(added(8));
  host.revision = 8;
  t.is(watch.revision, 5, 'an event is unread');
  t.is(watch.read(10).length, 1);
  t.is(watch.revision, 8);
  watch.fail(new StorageError('Closed', 'stopped'));
  host.revision = 20;
  t.is(watch.revision, 8);
  t.is(view.members, 2);
  for (const each of [watch, watch, other]) each.close();
  t.deepEqual([view.members, forgotten], [0, 2]);
});

test('a watch that waits is marked, and woken once however often it waits', (t) => {
  const view = new WatchView(all);
  const waiting = watcher();
  view.join();
  view.wait(waiting);
  t.true(waiting.waiting);
  view.wait(waiting);
  view.append(added(1));
  t.deepEqual(view.takeWaiting(), [waiting]);
  t.false(waiting.waiting);
  t.deepEqual(view.takeWaiting(), []);
});

test('a watch that is closed while it waits is not counted as waiting', (t) => {
  const view = new WatchView(all);
  const [one, two] = [watcher(), watcher()];
  const place = view.join();
  view.join();
  view.wait(one);
  view.leave(one);
  view.append(added(1));
  view.takeWaiting();
  view.append(added(2));
  t.is(view.piece(place, 10).length, 2, 'the other one does not wait and has everything to read');
  view.leave(two);
  t.is(view.members, 0);
});

test('events reach the views of their kind, namespace and key, and only these', (t) => {
  const scopes = new WatchScopes('/core/pods/');
  const named: ObjectPredicate = { everything: false, id: 'x', key: '/core/pods/a/x', matches: () => true };
  const views = {
    kind: scopes.view('/core/pods/', all),
    a: scopes.view('/core/pods/a/', all),
    b: scopes.view('/core/pods/b/', all),
    key: scopes.view('/core/pods/', named),
    odd: scopes.view('/core/pods/a/x', all),
  };
  for (const view of Object.values(views)) view.join();
  const reached = (key: string) => {
    const touched: WatchView[] = [];
    scopes.deliver(new KindEvent(5, key, object(key, 5), undefined, 0), touched);
    for (const view of touched) view.takeWaiting();
    return Object.entries(views)
      .filter(([, view]) => touched.includes(view))
      .map(([name]) => name);
  };
  t.deepEqual(reached('/core/pods/a/x'), ['kind', 'a', 'key', 'odd']);
  t.deepEqual(reached('/core/pods/a/xy'), ['kind', 'a', 'odd']);
  t.deepEqual(reached('/core/pods/b/x'), ['kind', 'b']);
  t.deepEqual(reached('/core/pods/c'), ['kind']);
  t.is(scopes.view('/core/pods/a/', all), views.a);
  views.a.join();
  views.a.leave(watcher());
  scopes.release('/core/pods/a/', views.a);
  t.is(scopes.view('/core/pods/a/', all), views.a, 'another watch uses it');
  for (const [prefix, view] of [
    ['/core/pods/', views.kind],
    ['/core/pods/a/', views.a],
    ['/core/pods/b/', views.b],
    ['/core/pods/', views.key],
    ['/core/pods/a/x', views.odd],
  ] as const) {
    view.leave(watcher());
    scopes.release(prefix, view);
  }
  t.true(scopes.empty);
});

test('views of a namespace receive events after the last watch of the whole kind has ended', (t) => {
  const scopes = new WatchScopes('/core/pods/');
  const kind = scopes.view('/core/pods/', all);
  const inNamespace = scopes.view('/core/pods/a/', all);
  scopes.release('/core/pods/', kind);
  const touched: WatchView[] = [];
  scopes.deliver(new KindEvent(5, '/core/pods/a/x', object('/core/pods/a/x', 5), undefined, 0), touched);
  t.deepEqual(touched, [inNamespace]);
});

test('a predicate decides once per event however many watchers share its view', (t) => {
  const scopes = new WatchScopes('/core/pods/');
  let asked = 0;
  const counting: ObjectPredicate = { everything: false, id: 'counting', matches: () => ++asked > 0 };
  for (let i = 0; i < 1000; i++) scopes.view('/core/pods/', counting).join();
  scopes.deliver(new KindEvent(5, '/core/pods/a/x', object('/core/pods/a/x', 5), undefined, 0), []);
  t.is(asked, 1);
});

test('only predicates for a field value that the object has or had are evaluated', (t) => {
  const scopes = new WatchScopes('/core/pods/');
  const asked: string[] = [];
  const colourOf = (stored: StoredObject) =>
    stored.value<{ metadata: { labels?: { colour?: string } } } & KubeObject>().metadata.labels?.colour;
  const coloured = (value: string): ObjectPredicate => ({
    everything: false,
    id: value,
    pin: { attribute: 'colour', value, read: colourOf },
    matches: (stored) => {
      asked.push(value);
      return colourOf(stored) === value;
    },
  });
  const views = ['red', 'blue', 'green'].map((value) => scopes.view('/core/pods/', coloured(value)));
  for (const view of views) view.join();
  const painted = (revision: number, colour?: string) =>
    StoredObject.fromValue(key, revision, 1, Buffer.from(JSON.stringify({ metadata: { labels: { colour } } })));
  const key = '/core/pods/a/x';
  const seen = (object: StoredObject | undefined, prev: StoredObject | undefined) => {
    asked.length = 0;
    const touched: WatchView[] = [];
    scopes.deliver(new KindEvent(9, key, object, prev, 0), touched);
    const events = touched.map((view) => `${view.predicate.id} ${view.piece(view.end - 1, 1)[0]?.type}`);
    for (const view of touched) view.takeWaiting();
    return [events, [...new Set(asked)]];
  };
  t.deepEqual(seen(painted(1, 'red'), undefined), [['red ADDED'], ['red']]);
  t.deepEqual(seen(painted(2, 'red'), painted(1, 'red')), [['red MODIFIED'], ['red']]);
  t.deepEqual(seen(painted(3, 'blue'), painted(2, 'red')), [
    ['blue ADDED', 'red DELETED'],
    ['blue', 'red'],
  ]);
  t.deepEqual(seen(painted(4), painted(3, 'blue')), [['blue DELETED'], ['blue']]);
  t.deepEqual(seen(painted(5, 'white'), painted(4)), [[], []]);
  t.deepEqual(seen(undefined, painted(6, 'green')), [['green DELETED'], ['green']]);
  for (const view of views) {
    view.leave(watcher());
    scopes.release('/core/pods/', view);
  }
  t.true(scopes.empty);
  t.deepEqual(seen(painted(7, 'red'), undefined), [[], []]);
});

test('readers are woken in slices, and a reader that throws does not affect the others', async (t) => {
  let now = 0;
  const clock: Clock = { now: () => 0, monotonic: () => now, after: () => () => {} };
  const errors: unknown[] = [];
  const queue = new WakeQueue(clock, (error) => errors.push(error));
  const woken: number[] = [];
  const wake = (i: number) => {
    woken.push(i);
    now += 0.1;
    if (i === 3) throw new Error('a bad reader');
  };
  queue.add(Array.from({ length: 300 }, (_, i) => watcher(() => wake(i))));
  queue.flush();
  const first = woken.length;
  t.is(first, 64, 'the time is examined after every 64');
  queue.add([watcher(() => wake(300))]);
  queue.flush();
  t.is(woken.length, first, 'the rest waits for its turn');
  for (let i = 0; i < 20 && woken.length < 301; i++) await turn();
  t.deepEqual(
    woken,
    Array.from({ length: 301 }, (_, i) => i),
  );
  t.is(errors.length, 1);
});

test('waiting for a revision ends when it is reached, at the timeout, or on abort', async (t) => {
  const clock = new FakeClock();
  const waiters = new FrontierWaiters(clock);
  const controller = new AbortController();
  const reached = waiters.wait(5, 3000);
  const late = waiters.wait(9, 3000);
  const left = waiters.wait(9, 3000, controller.signal);
  waiters.reached(5);
  t.true(await reached);
  const { signal } = new AbortController();
  const listening = waiters.wait(6, 3000, signal);
  t.is(getEventListeners(signal, 'abort').length, 1);
  waiters.reached(6);
  t.true(await listening);
  t.is(getEventListeners(signal, 'abort').length, 0, 'a signal that lives longer than the wait keeps no listener');
  controller.abort();
  t.false(await left);
  clock.advance(3000);
  t.false(await late);
  waiters.reached(100);
});
