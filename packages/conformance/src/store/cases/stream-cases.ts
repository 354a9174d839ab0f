import assert from 'node:assert/strict';
import type { StoreCase } from '../harness.ts';
import { everything, failsWith, put, remove } from '../store-driver.ts';
import { changesBetween, Watcher } from '../watcher.ts';

/** The ends of a stream: close, break of the loop, abort, close of the store. */
export const streamCases: readonly StoreCase[] = [
  {
    id: 'stream.break-closes',
    title: 'leaving the loop closes the stream',
    async run({ store }) {
      const after = await store.currentRevision();
      const revision = await put(store, '/a', 'x');
      const stream = await store.watch(everything, { after });
      for await (const batch of stream) if (batch.frontier >= revision) break;
      const next = await stream[Symbol.asyncIterator]().next();
      assert.equal(next.done, true);
    },
  },
  {
    id: 'stream.close-ends',
    title: 'close ends a waiting pull and every later one, and may be called again',
    async run({ store }) {
      const watcher = await Watcher.open(store, await store.currentRevision());
      const pulling = watcher.pull();
      await watcher.close();
      assert.equal(await pulling, false);
      await put(store, '/a', 'x');
      assert.equal(await watcher.pull(), false);
      await watcher.close();
    },
  },
  {
    id: 'stream.close-is-own',
    title: 'closing one stream does not affect others',
    async run({ store }) {
      const after = await store.currentRevision();
      const [one, two] = [await Watcher.open(store, after), await Watcher.open(store, after)];
      const pulling = two.pull();
      await one.close();
      const revision = await put(store, '/a', 'x');
      assert.equal(await pulling, true);
      await two.until(revision);
      assert.equal(two.changes.length, 1);
      await two.close();
    },
  },
  {
    id: 'stream.abort-before',
    title: 'a watch with an aborted signal fails with Timeout',
    async run({ store }) {
      const after = await store.currentRevision();
      await failsWith('Timeout', () => store.watch(everything, { after, signal: AbortSignal.abort() }));
    },
  },
  {
    id: 'stream.abort-waiting',
    title: 'an abort ends a waiting stream without an error, and the store continues',
    async run({ store }) {
      const controller = new AbortController();
      const after = await store.currentRevision();
      const watcher = await Watcher.open(store, after, { signal: controller.signal });
      const pulling = watcher.pull();
      controller.abort();
      assert.equal(await pulling, false);
      assert.equal(await watcher.pull(), false);
      const revision = await put(store, '/a', 'x');
      assert.equal((await changesBetween(store, after, revision)).length, 1);
    },
  },
  {
    id: 'stream.abort-between-pulls',
    title: 'an abort between two pulls ends the stream',
    async run({ store }) {
      const controller = new AbortController();
      const after = await store.currentRevision();
      const watcher = await Watcher.open(store, after, { signal: controller.signal });
      const revision = await put(store, '/a', 'x');
      await watcher.until(revision);
      controller.abort();
      await put(store, '/b', 'x');
      assert.equal(await watcher.pull(), false);
    },
  },
  {
    id: 'stream.store-close',
    title: 'closing the store fails a waiting pull with Closed, then the stream is over',
    async run({ store }) {
      const after = await store.currentRevision();
      const [waiting, idle] = [await Watcher.open(store, after), await Watcher.open(store, after)];
      const pulling = failsWith('Closed', () => waiting.pull());
      const advancing = failsWith('Closed', () => waiting.stream.advanceTo(after + 10));
      await store.close();
      await pulling;
      await advancing;
      await failsWith('Closed', () => idle.pull());
      assert.equal(await waiting.pull(), false);
      assert.equal(await idle.pull(), false);
    },
  },
  {
    id: 'stream.many-opened-and-closed',
    title: 'opening and closing hundreds of streams does not affect the store',
    async run({ store }) {
      const after = await store.currentRevision();
      for (let i = 0; i < 300; i++) {
        const watcher = await Watcher.open(store, after);
        const pulling = watcher.pull();
        await watcher.close();
        assert.equal(await pulling, false);
      }
      const revision = await put(store, '/a', 'x');
      const deleted = await remove(store, '/a', revision);
      assert.equal((await changesBetween(store, after, deleted)).length, 2);
    },
  },
];
