import test, { type ExecutionContext } from 'ava';
import { defineKind, StorageError, s } from '../../src/index.ts';
import {
  createCachedStorages,
  kindPrefix,
  type ObjectPredicate,
  type ResourceWatch,
  StorageMemory,
} from '../../src/internal.ts';
import { FakeClock, type Metrics, noMetrics } from '../../src/runtime.ts';
import { cacheMetricsOf } from '../../src/watch-cache/cached-storage.ts';
import { defaultWindowLimits } from '../../src/watch-cache/event-window.ts';
import { KindCache } from '../../src/watch-cache/kind-cache.ts';
import { LogStore } from './log-store.ts';

const kind = defineKind({ group: 'example.io', version: 'v1', kind: 'Boat', schema: s.message('Boat', '', {}) });
const prefix = kindPrefix(kind);
const everything: ObjectPredicate = { everything: true, id: '', matches: () => true };
const key = (name: string) => `${prefix}ns/${name}`;
const json = (name: string, text = '') => Buffer.from(JSON.stringify({ metadata: { name }, text }));

async function opened(t: ExecutionContext, log = new LogStore(), window = {}, metrics: Metrics = noMetrics) {
  const storages = createCachedStorages({ store: log.store, clock: new FakeClock(), window, metrics });
  await storages.start();
  t.teardown(() => storages.stop());
  const storage = storages.forKind(kind);
  t.is(storages.forKind(kind), storage, 'one cache per kind');
  const names = async (options: object = {}) => {
    const list = await storage.list(prefix, { at: { at: 'latest' }, predicate: everything, ...options });
    return { list, names: [...list.objects()].map((object) => object.key.slice(prefix.length + 3)) };
  };
  return { log, storages, storage, names };
}

const turns = async (count = 10) => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
};

async function events(watch: ResourceWatch): Promise<string[]> {
  await turns();
  return watch.read(100).map(({ type, object }) => `${type} ${object.revision}`);
}

const changesAfter = (revision: number) =>
  ({ from: { start: 'changesAfter', revision }, predicate: everything }) as const;

test('storages are ready from their start, which connects them, until they stop', async (t) => {
  const storages = createCachedStorages({ store: new LogStore().store, clock: new FakeClock() });
  t.false(storages.ready());
  await storages.start();
  await turns();
  t.true(storages.ready());
  await storages.stop();
  t.false(storages.ready());
});

test('metrics count the changes of a kind, its objects, its open watches and those that read history', async (t) => {
  const values: Record<string, number> = {};
  const metric = ({ name }: { readonly name: string }) => ({
    add: (count = 1) => {
      values[name] = (values[name] ?? 0) + count;
    },
    set: (value: number) => {
      values[name] = value;
    },
    observe: () => {},
  });
  const metrics: Metrics = { counter: metric, gauge: metric, histogram: metric, text: async () => '' };
  const { log, storage } = await opened(t, new LogStore(), { maxEvents: 1 }, metrics);
  const watch = await storage.watch(prefix, changesAfter(0));
  for (const name of ['a', 'b', 'c']) log.put(key(name), json(name));
  await turns();
  const counted = (name: string) => values[`keelson_watch_cache_${name}`];
  t.is(values['apiserver_storage_objects'], 3);
  t.deepEqual(['events_total', 'watchers', 'history_reads_total'].map(counted), [3, 1, undefined]);
  const late = await storage.watch(prefix, changesAfter(0));
  t.is(counted('watchers'), 2);
  t.is(counted('history_reads_total'), 1, 'two of its changes have left the window');
  late.close();
  watch.close();
  watch.close();
  t.is(counted('watchers'), 0, 'a watch is closed once');
});

test('a kind that cannot be read receives no changes until it is read again', async (t) => {
  const attached = new Set<KindCache>();
  const feed = {
    frontier: 0,
    attach: (cache: KindCache) => void attached.add(cache),
    detach: (cache: KindCache) => void attached.delete(cache),
  };
  const log = new LogStore();
  log.put(key('a'), json('a'));
  log.duringList = async () => {
    t.is(attached.size, 1, 'changes are collected while the list is read');
    throw new StorageError('Unavailable', 'no answer');
  };
  const clock = new FakeClock();
  const cache = new KindCache(
    {
      ...{ prefix, stamp: kind, store: log.store, clock, limits: defaultWindowLimits, windowTotal: { bytes: 0 } },
      ...{ memory: new StorageMemory(clock), metrics: cacheMetricsOf(undefined, 'boats') },
    },
    feed,
  );
  await t.throwsAsync(async () => cache.load(), { code: 'Unavailable' });
  t.is(attached.size, 0);
  log.duringList = async () => {};
  await cache.load();
  t.is(attached.size, 1);
  t.is(cache.index?.snapshot().size, 1);
});

test('changes that arrive while a kind is loaded are applied once, and none of them is missing', async (t) => {
  const log = new LogStore();
  log.put(key('a'), json('a'));
  log.duringList = async () => {
    log.put(key('b'), json('b'));
    await turns();
  };
  const { names } = await opened(t, log);
  t.deepEqual((await names()).names, ['a', 'b']);
  t.is(log.lists, 1);
});

test('changes that the list contains already are not events of the window', async (t) => {
  const log = new LogStore();
  const { storage, names } = await opened(t, log);
  log.deliverTo = 0;
  log.put(key('a'), json('a', '1'));
  log.put(key('a'), json('a', '2'));
  const loading = names({ at: { at: 'any' } });
  await turns();
  t.deepEqual((await loading).names, ['a']);
  log.deliverTo = 1;
  log.hub.wake();
  await turns();
  t.is(
    (await storage.get(key('a'), { at: 'any' }))?.revision,
    2,
    'an older change does not replace the state of the list',
  );
  log.deliverTo = undefined;
  log.hub.wake();
  const watch = await storage.watch(prefix, changesAfter(2));
  log.put(key('a'), json('a', '3'));
  t.deepEqual(await events(watch), ['MODIFIED 3']);
  t.is((await storage.get(key('a'), { at: 'latest' }))?.revision, 3);
});

test('a corrupt object fails a list before its first byte', async (t) => {
  const { log, names } = await opened(t);
  log.put(key('a'), json('a'));
  log.put(key('b'), Buffer.from('no JSON'));
  await t.throwsAsync(names(), { code: 'Corrupt' });
});

test('the pages of a list show the state of the first page after that has left the window', async (t) => {
  const { log, names } = await opened(t, new LogStore(), { maxEvents: 1 });
  for (const name of ['a', 'b', 'c']) log.put(key(name), json(name));
  const first = await names({ limit: 2 });
  t.deepEqual(first.names, ['a', 'b']);
  t.is(first.list.remaining, 1);
  const { next } = first.list;
  for (const name of ['d', 'e', 'f']) log.put(key(name), json(name));
  await turns();
  t.deepEqual((await names({ limit: 2, resume: next })).names, ['c']);
  t.is(log.lists, 1, 'the store was not asked for the old state');
});

test('an own write is visible before the stream delivers it, and is one event', async (t) => {
  const { log, storage } = await opened(t);
  const watch = await storage.watch(prefix, changesAfter(0));
  log.deliverTo = 0;
  const { revision } = await storage.create(key('a'), json('a'));
  t.is((await storage.get(key('a'), { at: 'any' }))?.revision, revision);
  log.deliverTo = undefined;
  log.hub.wake();
  t.deepEqual(await events(watch), ['ADDED 1']);
});

test('an own write does not overtake the earlier write of another process', async (t) => {
  const { log, storage } = await opened(t);
  const watch = await storage.watch(prefix, changesAfter(0));
  log.deliverTo = 0;
  log.put(key('other'), json('other'));
  await storage.create(key('own'), json('own'));
  t.deepEqual(await events(watch), []);
  log.deliverTo = undefined;
  log.hub.wake();
  t.deepEqual(await events(watch), ['ADDED 1', 'ADDED 2']);
});

test('a requested bookmark follows the event that is still to be read, and is delivered once', async (t) => {
  const { log, storage } = await opened(t);
  const watch = await storage.watch(prefix, changesAfter(0));
  log.put(key('a'), json('a'));
  await turns();
  watch.requestBookmark();
  t.deepEqual(await events(watch), ['ADDED 1']);
  t.deepEqual(await events(watch), ['BOOKMARK 1']);
  t.deepEqual(await events(watch), []);
});

test('a watch from a future revision delivers a requested bookmark when that revision is reached, not before', async (t) => {
  const { log, storage } = await opened(t);
  const watch = await storage.watch(prefix, changesAfter(3));
  log.put(key('a'), json('a'));
  t.deepEqual(await events(watch), [], 'nothing was requested, and the event is older than the watch');
  watch.requestBookmark();
  t.deepEqual(await events(watch), [], 'revision 1 is older than the watch');
  log.put(key('a'), json('a', '2'));
  log.put(key('a'), json('a', '3'));
  t.deepEqual(await events(watch), ['BOOKMARK 3']);
  log.put(key('a'), json('a', '4'));
  t.deepEqual(await events(watch), ['MODIFIED 4']);
});

test('a watch from before the window reads history, and is continued live', async (t) => {
  const { log, storage, names } = await opened(t, new LogStore(), { maxEvents: 1 });
  await names();
  for (let i = 1; i <= 4; i++) log.put(key('a'), json('a', String(i)));
  await turns();
  const watch = await storage.watch(prefix, changesAfter(1));
  t.deepEqual(await events(watch), ['MODIFIED 2', 'MODIFIED 3', 'MODIFIED 4']);
  log.put(key('a'), json('a', '5'));
  t.deepEqual(await events(watch), ['MODIFIED 5']);
});

test('watches that resume before the window share one read of the history, which extends the window', async (t) => {
  const log = new LogStore();
  for (let i = 1; i <= 4; i++) log.put(key('a'), json('a', String(i)));
  const { storage, names } = await opened(t, log);
  await names();
  const before = log.watches;
  const watches = await Promise.all([1, 1, 2, 3].map((revision) => storage.watch(prefix, changesAfter(revision))));
  t.deepEqual(await Promise.all(watches.map(events)), [
    ['MODIFIED 2', 'MODIFIED 3', 'MODIFIED 4'],
    ['MODIFIED 2', 'MODIFIED 3', 'MODIFIED 4'],
    ['MODIFIED 3', 'MODIFIED 4'],
    ['MODIFIED 4'],
  ]);
  t.is(log.watches - before, 1);
  await storage.watch(prefix, changesAfter(1));
  t.is(log.watches - before, 1, 'the history is in the window now');
});

test('a watch that was slow reads the events that left the window from history', async (t) => {
  const { log, storage, names } = await opened(t, new LogStore(), { maxEvents: 2 });
  await names();
  const watch = await storage.watch(prefix, changesAfter(0));
  for (let i = 1; i <= 600; i++) {
    log.put(key('a'), json('a', String(i)));
    if (i % 50 === 0) await turns(1);
  }
  await turns();
  const seen: number[] = [];
  for (let round = 0; round < 40 && seen.at(-1) !== 600; round++) {
    await turns(2);
    seen.push(...watch.read(100).map(({ object }) => object.revision));
  }
  t.deepEqual(
    seen,
    Array.from({ length: 600 }, (_, i) => i + 1),
  );
});

test('a slow watch ends with Compacted when the store no longer has the events that left the window', async (t) => {
  const { log, storage, names } = await opened(t, new LogStore(), { maxEvents: 2 });
  await names();
  const watch = await storage.watch(prefix, changesAfter(0));
  for (let i = 1; i <= 600; i++) {
    log.put(key('a'), json('a', String(i)));
    if (i % 50 === 0) await turns(1);
  }
  log.compacted = 600;
  const seen: number[] = [];
  await t.throwsAsync(
    async () => {
      for await (const { object } of watch) seen.push(object.revision);
    },
    { code: 'Compacted' },
  );
  t.deepEqual(
    seen,
    Array.from(seen, (_, i) => i + 1),
  );
  t.true(seen.length < 600);
});

test('a watch ends with Compacted when the history that it waits for is compacted, and shows no later event', async (t) => {
  const { log, storage, names } = await opened(t, new LogStore(), { maxEvents: 1 });
  await names();
  for (let i = 1; i <= 4; i++) log.put(key('a'), json('a', String(i)));
  await turns();
  log.deliverTo = 2;
  const watch = await storage.watch(prefix, changesAfter(1));
  t.deepEqual(await events(watch), ['MODIFIED 2']);
  let woken = false;
  watch.onReadable(() => {
    woken = true;
  });
  await turns();
  t.false(woken, 'the next piece of the history has not arrived yet');
  log.compacted = 4;
  log.deliverTo = undefined;
  log.put(key('a'), json('a', '5'));
  await turns();
  t.is((await storage.get(key('a'), { at: 'any' }))?.revision, 5, 'the cache itself has lost nothing');
  t.true(woken);
  t.throws(() => watch.read(100), { code: 'Compacted' });
});

test('a kind whose changes were compacted is read again; its watches end, resumable ones with Closed', async (t) => {
  const { log, storage, names } = await opened(t);
  for (const name of ['a', 'b', 'c']) log.put(key(name), json(name));
  await names();
  const behind = await storage.watch(prefix, changesAfter(3));
  const ahead = await storage.watch(prefix, changesAfter(6));
  log.deliverTo = 3;
  log.put(key('d'), json('d'));
  log.put(key('a'), json('a', '2'));
  log.put(key('e'), json('e'));
  log.compacted = 5;
  log.deliverTo = undefined;
  log.hub.wake();
  await turns();
  t.throws(() => behind.read(100), { code: 'Compacted' });
  t.throws(() => ahead.read(100), { code: 'Closed' });
  t.is(log.lists, 1);
  t.deepEqual((await names()).names, ['a', 'b', 'c', 'd', 'e']);
  t.is(log.lists, 2);
  const watch = await storage.watch(prefix, changesAfter(6));
  log.put(key('a'), json('a', '3'));
  t.deepEqual(await events(watch), ['MODIFIED 7']);
});

test('events remain readable for slow watches until 256 of them have left the window', async (t) => {
  const { log, storage, names } = await opened(t, new LogStore(), { maxEvents: 1 });
  await names();
  const [early, late] = [await storage.watch(prefix, changesAfter(0)), await storage.watch(prefix, changesAfter(0))];
  const streams = log.watches;
  for (let i = 1; i <= 256; i++) log.put(key('a'), json('a', String(i)));
  await turns();
  t.is(early.read(1000).length, 256);
  t.is(log.watches, streams, 'the history of the store was not read');
  log.put(key('a'), json('a', '257'));
  await turns();
  t.deepEqual(late.read(1000), []);
  await turns();
  t.is(log.watches, streams + 1, 'the events have been dropped, so they are read from the store');
  t.is(late.read(1000).length, 257);
});

test('an exact read of a past state undoes creations, changes and deletions', async (t) => {
  const { log, storage, names } = await opened(t);
  await names();
  log.put(key('a'), json('a', '1'));
  log.put(key('a'), json('a', '2'));
  log.put(key('b'), json('b'));
  await names();
  const at = (revision: number) => names({ at: { at: 'exact', revision } });
  t.deepEqual((await at(2)).names, ['a']);
  t.deepEqual((await storage.get(key('a'), { at: 'exact', revision: 1 }))?.value()['text' as never], '1');
  t.deepEqual((await at(3)).names, ['a', 'b']);
});

test('what is cached now is read without waiting: the objects below a prefix, and nothing before the kind is loaded', async (t) => {
  const { log, storages, storage, names } = await opened(t);
  const cached = () => storage.cached?.list(`${prefix}ns/`).map((object) => object.key);
  t.is(cached(), undefined);
  await names();
  t.deepEqual(cached(), []);
  for (const name of ['a', 'b']) log.put(key(name), json(name));
  log.put(`${prefix}other/c`, json('c'));
  await names();
  t.deepEqual(cached(), [key('a'), key('b')]);
  t.is(storage.cached?.get(key('a'))?.key, key('a'));
  t.is(storage.cached?.get(key('c')), undefined);
  log.put(key('b'), Buffer.from('x'));
  await names().catch(() => {});
  t.throws(cached, { code: 'Corrupt' }, 'as a list fails');
  await storages.stop();
  t.is(cached(), undefined);
});

test('a consistent read waits for the feed and fails with Timeout when that does not follow', async (t) => {
  const log = new LogStore();
  const clock = new FakeClock();
  const storages = createCachedStorages({ store: log.store, clock });
  await storages.start();
  t.teardown(() => storages.stop());
  const storage = storages.forKind(kind);
  await storage.get(key('a'), { at: 'latest' });
  log.deliverTo = log.revision;
  log.put(key('a'), json('a'));
  const read = t.throwsAsync(storage.get(key('a'), { at: 'latest' }), { code: 'Timeout' });
  await turns();
  clock.advance(10_000);
  await read;
});
