import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import type { Store } from '@keelson/core/storage-adapter';
import type { StoreCase } from '../harness.ts';
import { bytes, everything, failsWith, listAll, put, putAll, succeeded } from '../store-driver.ts';

const aborted = AbortSignal.abort(new Error('the caller has aborted'));

async function first(list: ReturnType<Store['list']>): Promise<void> {
  for await (const chunk of list) if (chunk.entries.length >= 0) return;
}

/** Calls of every method that have an effect on an open store. */
function everyCall(store: Store, signal?: AbortSignal): Record<string, () => Promise<unknown>> {
  const options = signal === undefined ? {} : { signal };
  return {
    get: () => store.get('/a', options),
    list: () => first(store.list(everything, options)),
    count: () => store.count(everything, options),
    currentRevision: () => store.currentRevision(options),
    write: () => store.write({ op: 'put', key: '/new', value: bytes('x'), expect: 0 }, options),
    delete: () => store.write({ op: 'delete', key: '/a', expect: 2 }, options),
    watch: () => store.watch(everything, { after: 1, ...options }),
  };
}

/** Reopening, abort and close. */
export const lifeCycleCases: readonly StoreCase[] = [
  {
    id: 'open.again',
    title: 'opening an open store returns the same store, and its streams continue',
    async run({ store }) {
      const identity = await store.identity();
      const revision = await put(store, '/a', 'x');
      const stream = await store.watch(everything, { after: revision });
      await Promise.all([store.ready(), store.ready()]);
      const next = await put(store, '/b', 'y');
      for await (const { changes } of stream) {
        if (changes.length === 0) continue;
        assert.deepEqual(
          changes.map((change) => change.revision),
          [next],
        );
        break;
      }
      assert.deepEqual(await store.identity(), identity);
      assert.deepEqual((await listAll(store, everything)).keys, ['/a', '/b']);
    },
  },
  {
    id: 'abort.before-call',
    title: 'a call with an aborted signal fails with Timeout and does nothing',
    async run({ store }) {
      const revision = await put(store, '/a', 'x');
      for (const call of Object.values(everyCall(store, aborted))) await failsWith('Timeout', call);
      assert.equal(await store.currentRevision(), revision);
      assert.deepEqual((await listAll(store, everything)).keys, ['/a']);
    },
  },
  {
    id: 'abort.unused-signal',
    title: 'a signal that is never aborted has no effect',
    async run({ store }) {
      const { signal } = new AbortController();
      await put(store, '/a', 'x');
      for (const [name, call] of Object.entries(everyCall(store, signal))) {
        if (name !== 'delete') await call();
      }
      assert.deepEqual((await listAll(store, everything)).keys, ['/a', '/new']);
    },
  },
  {
    id: 'abort.shared-signal',
    title: 'a signal that hundreds of calls share gets a bounded number of listeners, which are removed',
    async run({ store }) {
      const { signal } = new AbortController();
      let most = 0;
      const count = (): void => {
        most = Math.max(most, getEventListeners(signal, 'abort').length);
      };
      const original = signal.addEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<AbortSignal['addEventListener']>) => {
        original(...args);
        count();
      };
      const { revision } = await store.get('/a');
      const streams = await Promise.all(
        Array.from({ length: 20 }, () => store.watch(everything, { after: revision, signal })),
      );
      const value = bytes('x'.repeat(1000));
      await Promise.all(
        Array.from({ length: 500 }, (_, i) => [
          store.write({ op: 'put', key: `/k/${i}`, value, expect: 0 }, { signal }),
          store.get(`/k/${i}`, { signal }),
          store.currentRevision({ signal }),
        ]).flat(),
      );
      await Promise.all(streams.map((stream) => stream.close()));
      // Node warns about a leak from the eleventh listener on.
      assert.ok(most <= 10, `${most} listeners at once`);
      assert.equal(getEventListeners(signal, 'abort').length, 0);
    },
  },
  {
    id: 'abort.after-acknowledgement',
    title: 'aborting after the result has no effect',
    async run({ store }) {
      const controller = new AbortController();
      const options = { signal: controller.signal };
      const revision = succeeded(await store.write({ op: 'put', key: '/a', value: bytes('x'), expect: 0 }, options));
      controller.abort();
      assert.equal((await store.get('/a')).entry?.modRevision, revision);
    },
  },
  {
    id: 'abort.during-write',
    title: 'a write aborted in flight is acknowledged, rejected, or fails with Timeout (not done) or OutcomeUnknown',
    async run({ store }) {
      for (let i = 0; i < 40; i++) {
        const controller = new AbortController();
        const key = `/a/${i}`;
        const writing = store
          .write({ op: 'put', key, value: bytes('x'), expect: 0 }, { signal: controller.signal })
          .then(
            () => 'done',
            (error: { code?: string }) => error.code,
          );
        if (i % 2 === 1) await new Promise((resolve) => setImmediate(resolve));
        controller.abort();
        const outcome = await writing;
        assert.ok(outcome === 'done' || outcome === 'Timeout' || outcome === 'OutcomeUnknown', String(outcome));
        // A later write of the same key shows whether the aborted write took effect.
        const settled = await store.write({ op: 'put', key, value: bytes('settle'), expect: 0 });
        if (outcome === 'done') assert.ok(!settled.ok);
        if (outcome === 'Timeout') assert.ok(settled.ok, 'nothing had happened');
      }
    },
  },
  {
    id: 'abort.during-list',
    title: 'a list aborted between its chunks fails with Timeout or is complete',
    async run({ store }) {
      await putAll(
        store,
        Array.from({ length: 2500 }, (_, i) => `/k/${i}`),
      );
      const controller = new AbortController();
      let count = 0;
      let last = true;
      const reading = async () => {
        for await (const chunk of store.list(everything, { signal: controller.signal })) {
          count += chunk.entries.length;
          last = !chunk.more;
          controller.abort();
        }
        assert.equal(count, 2500);
      };
      await reading().catch((error: unknown) => failsWith('Timeout', () => Promise.reject(error)));
      assert.ok(count > 0 && (last ? count === 2500 : count < 2500));
    },
  },
  {
    id: 'close.every-method',
    title: 'after close every method fails with Closed',
    async run({ store }) {
      await put(store, '/a', 'x');
      await store.close();
      const calls = {
        ...everyCall(store),
        compact: () => store.compact(1),
        compactedRevision: () => store.compactedRevision(),
        identity: () => store.identity(),
      };
      for (const call of Object.values(calls)) await failsWith('Closed', call);
    },
  },
  {
    id: 'close.idempotent',
    title: 'close may be called again, also concurrently',
    async run({ store }) {
      await put(store, '/a', 'x');
      await Promise.all([store.close(), store.close()]);
      await store.close();
    },
  },
  {
    id: 'close.ends-lists',
    title: 'a list in progress ends with Closed',
    async run({ store }) {
      await putAll(
        store,
        Array.from({ length: 2500 }, (_, i) => `/k/${i}`),
      );
      const iterator = store.list(everything)[Symbol.asyncIterator]();
      const chunk = await iterator.next();
      assert.ok(chunk.done !== true && chunk.value.more);
      await store.close();
      await failsWith('Closed', () => iterator.next());
    },
  },
];
