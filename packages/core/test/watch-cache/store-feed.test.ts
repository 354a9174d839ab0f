import test from 'ava';
import { StorageError, StorageErrorCode } from '../../src/errors/storage-error.ts';
import { FakeClock } from '../../src/runtime/fake-clock.ts';
import { type LogFields, type Logger, silentLogger } from '../../src/runtime/logger.ts';
import type { Store, WatchBatch, WatchStream } from '../../src/storage/store.ts';
import { StoredObject } from '../../src/storage/stored-object.ts';
import type { Incoming, KindCache } from '../../src/watch-cache/kind-cache.ts';
import { StoreFeed } from '../../src/watch-cache/store-feed.ts';

/**
 * A stream that makes no progress of its own: it reports a frontier only when it is asked to advance, and only while
 * `answers`.
 */
class SilentStream implements WatchStream {
  frontier = 0;
  answers = true;
  readonly asked: number[] = [];
  readonly #waiting: (() => void)[] = [];
  #progress: WatchBatch | undefined;
  #end: Error | 'closed' | undefined;

  async advanceTo(revision: number): Promise<void> {
    this.asked.push(revision);
    if (!this.answers) return;
    this.deliver({ changes: [], frontier: revision });
  }

  deliver(batch: WatchBatch): void {
    this.#progress = batch;
    this.#wake();
  }

  break(error: Error): void {
    this.#end = error;
    this.#wake();
  }

  async close(): Promise<void> {
    this.#end ??= 'closed';
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchBatch> {
    for (;;) {
      if (this.#end === 'closed') return;
      if (this.#end !== undefined) throw this.#end;
      if (this.#progress === undefined) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      else {
        const batch = this.#progress;
        this.#progress = undefined;
        this.frontier = batch.frontier;
        yield batch;
      }
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** A store of which a feed sees nothing but its revision and its streams. */
class SilentStore {
  revision = 10;
  readonly capabilities = { denseRevisions: false, oneChangePerRevision: true };
  readonly streams: SilentStream[] = [];
  opened: () => void = () => {};
  /** Whether reads of the revision fail. */
  unreadable = false;
  /** Called in every read of the revision. */
  duringRead: () => void = () => {};

  async identity() {
    return { storeId: 'silent', epoch: 1 };
  }

  async currentRevision() {
    this.duringRead();
    if (this.unreadable) throw new StorageError(StorageErrorCode.Unavailable, 'no answer');
    return this.revision;
  }

  async watch() {
    const stream = new SilentStream();
    this.streams.push(stream);
    this.opened();
    return stream;
  }
}

async function startedFeed(logger?: Logger) {
  const store = new SilentStore();
  const clock = new FakeClock();
  const feed = new StoreFeed(store as unknown as Store, { sharedValues: false }, clock, logger);
  await feed.start();
  const next = () =>
    new Promise<void>((resolve) => {
      store.opened = resolve;
    });
  return { store, clock, feed, next };
}

const turns = async (count = 20): Promise<void> => {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('a read that waits while the stream is broken makes the next stream advance', async (t) => {
  const { store, clock, feed, next } = await startedFeed();
  const reopened = next();
  store.streams[0]?.break(new StorageError(StorageErrorCode.Unavailable, 'cut'));
  await turns();
  store.revision = 15;
  const waiting = feed.waitFor(15);
  clock.advance(1_000);
  await reopened;
  await turns();
  t.deepEqual(store.streams[1]?.asked, [15]);
  t.true(await waiting);
  await feed.stop();
});

test('a read that waits keeps no timer when it is answered', async (t) => {
  const { store, clock, feed } = await startedFeed();
  (store.streams[0] as SilentStream).answers = false;
  const waiting = feed.waitFor(11);
  t.is(clock.timers, 1);
  store.streams[0]?.deliver({ changes: [], frontier: 11 });
  t.true(await waiting);
  t.is(clock.timers, 0);
  await feed.stop();
});

test('a write of this process that the stream delivers keeps its object; every other change gets a new one', async (t) => {
  const { store, feed } = await startedFeed();
  const received: Incoming[] = [];
  feed.attach({
    prefix: '/core/pods/',
    receive: (change: Incoming) => received.push(change),
    reset: () => {},
  } as unknown as KindCache);
  const key = '/core/pods/n/a';
  const value = Buffer.from('{"metadata":{}}');
  const own = StoredObject.fromValue(key, 13, 13, value);
  feed.offer({ revision: 13, key, object: own });
  const change = (revision: number) => ({
    ...{ type: 'create' as const, revision, key, prev: undefined },
    entry: { key, value, createRevision: revision, modRevision: revision },
  });
  for (const revision of [12, 13, 14]) {
    store.streams[0]?.deliver({ changes: [change(revision)], frontier: revision });
    await turns();
  }
  t.deepEqual(
    received.map(({ object }) => object?.revision),
    [12, 13, 14],
  );
  t.deepEqual(
    received.map(({ object }) => object === own),
    [false, true, false],
  );
  await feed.stop();
});

test('a read that waits while history is lost is answered by the new beginning', async (t) => {
  const { store, feed, next } = await startedFeed();
  (store.streams[0] as SilentStream).answers = false;
  const waiting = feed.waitFor(20);
  await turns();
  store.revision = 25;
  const reopened = next();
  store.streams[0]?.break(new StorageError(StorageErrorCode.Compacted, 'gone'));
  await reopened;
  t.true(await waiting);
  t.is(feed.frontier, 25);
  await feed.stop();
});

test('a broken stream is opened again after a pause, which doubles until a stream delivers something', async (t) => {
  const { store, clock, feed } = await startedFeed();
  const breakLast = async () => {
    store.streams.at(-1)?.break(new StorageError(StorageErrorCode.Unavailable, 'cut'));
    await turns();
  };
  const pauses = async (pauseMs: number) => {
    const streams = store.streams.length;
    clock.advance(pauseMs - 1);
    await turns();
    t.is(store.streams.length, streams, `the pause of ${pauseMs} ms has not passed`);
    t.false(feed.connected);
    clock.advance(1);
    await turns();
    t.is(store.streams.length, streams + 1, `the pause of ${pauseMs} ms has passed`);
    t.true(feed.connected);
  };
  for (const pauseMs of [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
    await breakLast();
    await pauses(pauseMs);
  }
  t.true(await feed.waitFor(11));
  await breakLast();
  await pauses(50);
  await feed.stop();
});

test('a stream that is compacted before the position of the caches is resumed there, after a pause', async (t) => {
  const { store, clock, feed } = await startedFeed();
  store.revision = 25;
  store.streams[0]?.break(new StorageError(StorageErrorCode.Compacted, 'behind', { revision: 10 }));
  await turns();
  t.is(store.streams.length, 1);
  clock.advance(50);
  await turns();
  t.is(store.streams.length, 2);
  t.is(feed.frontier, 10);
  await feed.stop();
});

function recordingCache() {
  const calls: string[] = [];
  const cache = {
    prefix: '/core/pods/',
    receive: ({ revision }: Incoming) => calls.push(`change ${revision}`),
    reset: ({ code }: StorageError) => calls.push(`reset ${code}`),
  };
  return { calls, cache: cache as unknown as KindCache };
}

const batchOf = (revision: number): WatchBatch => ({
  changes: [{ type: 'delete', revision, key: '/core/pods/n/a', entry: undefined, prev: undefined }],
  frontier: revision,
});

test('caches are reset when history is lost, and receive no change until they attach again', async (t) => {
  const { store, feed } = await startedFeed();
  const { calls, cache } = recordingCache();
  feed.attach(cache);
  store.streams[0]?.deliver(batchOf(11));
  await turns();
  store.revision = 25;
  store.streams[0]?.break(new StorageError(StorageErrorCode.Compacted, 'gone'));
  await turns();
  store.streams[1]?.deliver(batchOf(26));
  await turns();
  t.deepEqual(calls.splice(0), ['change 11', 'reset Compacted']);
  feed.attach(cache);
  store.streams[1]?.deliver(batchOf(27));
  await turns();
  t.deepEqual(calls.splice(0), ['change 27']);
  store.duringRead = () => feed.attach(cache);
  store.streams[1]?.break(new StorageError(StorageErrorCode.Compacted, 'gone again'));
  await turns();
  t.deepEqual(calls, ['reset Compacted', 'reset Compacted'], 'a cache that attached during the read lacks changes too');
  await feed.stop();
});

test('a detached cache receives no changes; another cache of the same kind stays attached', async (t) => {
  const { store, feed } = await startedFeed();
  const [first, second] = [recordingCache(), recordingCache()];
  feed.attach(first.cache);
  feed.detach(second.cache);
  store.streams[0]?.deliver(batchOf(11));
  await turns();
  feed.detach(first.cache);
  store.streams[0]?.deliver(batchOf(12));
  await turns();
  t.deepEqual([first.calls, second.calls], [['change 11'], []]);
  await feed.stop();
});

test('caches are reset when the store ends its stream, which is not opened again', async (t) => {
  const { store, clock, feed } = await startedFeed();
  const { calls, cache } = recordingCache();
  feed.attach(cache);
  await store.streams[0]?.close();
  await turns();
  clock.advance(60_000);
  await turns();
  t.deepEqual([calls, store.streams.length], [['reset Closed'], 1]);
  await feed.stop();
});

test('caches are reset once when the feed stops', async (t) => {
  const { feed } = await startedFeed();
  const { calls, cache } = recordingCache();
  feed.attach(cache);
  await Promise.all([feed.stop(), feed.stop()]);
  await feed.stop();
  t.deepEqual(calls, ['reset Closed']);
});

test('a store that cannot be read after history was lost is read again after a pause', async (t) => {
  const { store, clock, feed } = await startedFeed();
  const { calls, cache } = recordingCache();
  feed.attach(cache);
  store.unreadable = true;
  store.revision = 25;
  store.streams[0]?.break(new StorageError(StorageErrorCode.Compacted, 'gone'));
  await turns();
  t.is(store.streams.length, 1);
  t.deepEqual(calls, ['reset Compacted'], 'watches end at once');
  store.unreadable = false;
  clock.advance(50);
  await turns();
  store.streams[1]?.break(new StorageError(StorageErrorCode.Compacted, 'still gone'));
  await turns();
  t.is(feed.frontier, 25);
  await feed.stop();
});

test('a stream that fails is logged by the watch cache, and a store that cannot be read as well', async (t) => {
  const lines: string[] = [];
  const loggerOf = (component: unknown): Logger => ({
    ...silentLogger,
    warn: (message: string, { err }: LogFields = {}) => void lines.push(`${component}: ${message}: ${err}`),
    child: (fields) => loggerOf(fields['component']),
  });
  const { store, feed } = await startedFeed(loggerOf('none'));
  store.unreadable = true;
  store.streams[0]?.break(new StorageError(StorageErrorCode.Compacted, 'gone'));
  await turns();
  t.deepEqual(lines, [
    'watch-cache: the watch of the store failed and is resumed: StorageError: gone',
    'watch-cache: the store cannot be read: StorageError: no answer',
  ]);
  await feed.stop();
});
