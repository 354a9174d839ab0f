import { isStorageError } from '@keelson/core';
import type { Change, Entry, Store, WatchBatch, WatchStream } from '@keelson/core/storage-adapter';
import { MemoryStore } from '../../src/index.ts';

/** A fault that occurred in stores, and a store with that fault. */
export interface BrokenStore {
  readonly fault: string;
  readonly make: (memory: MemoryStore) => Store;
}

function over(inner: Store, changed: Partial<Store>): Store {
  return {
    capabilities: inner.capabilities,
    identity: () => inner.identity(),
    write: (op, options) => inner.write(op, options),
    get: (key, options) => inner.get(key, options),
    list: (range, options) => inner.list(range, options),
    count: (range, options) => inner.count(range, options),
    currentRevision: (options) => inner.currentRevision(options),
    watch: (range, options) => inner.watch(range, options),
    compact: (upTo) => inner.compact(upTo),
    compactedRevision: () => inner.compactedRevision(),
    ready: () => inner.ready(),
    close: () => inner.close(),
    ...changed,
  };
}

/** A stream whose batches go through `map`, which may return undefined to drop one. */
function mappedStream(inner: WatchStream, map: (batch: WatchBatch) => WatchBatch | undefined): WatchStream {
  const iterator = inner[Symbol.asyncIterator]();
  return {
    get frontier() {
      return inner.frontier;
    },
    advanceTo: (revision, options) => inner.advanceTo(revision, options),
    close: () => inner.close(),
    [Symbol.asyncIterator]: () => ({
      async next() {
        for (;;) {
          const result = await iterator.next();
          if (result.done === true) return { done: true, value: undefined };
          const value = map(result.value);
          if (value !== undefined) return { done: false, value };
        }
      },
      return: async () => {
        await inner.close();
        return { done: true, value: undefined };
      },
    }),
  };
}

function watching(memory: Store, mapper: () => (batch: WatchBatch) => WatchBatch | undefined): Store {
  return over(memory, { watch: async (range, options) => mappedStream(await memory.watch(range, options), mapper()) });
}

const changing = (memory: Store, map: (changes: readonly Change[]) => readonly Change[]) =>
  watching(memory, () => (batch) => ({ ...batch, changes: map(batch.changes) }));

const entriesOf = (memory: Store, map: (entries: readonly Entry[]) => readonly Entry[]) =>
  over(memory, {
    list: async function* (range, options) {
      for await (const chunk of memory.list(range, options)) yield { ...chunk, entries: map(chunk.entries) };
    },
  });

export const brokenStores: readonly BrokenStore[] = [
  {
    fault: 'drops every tenth event',
    make(memory) {
      let count = 0;
      return changing(memory, (changes) => changes.filter(() => ++count % 10 !== 0));
    },
  },
  {
    fault: 'delivers an event twice',
    make: (memory) =>
      watching(memory, () => {
        let last: readonly Change[] = [];
        return (batch) => {
          const changes = [...last, ...batch.changes];
          last = batch.changes.slice(-1);
          return { ...batch, changes };
        };
      }),
  },
  {
    fault: 'delivers every event twice',
    make: (memory) => changing(memory, (changes) => changes.flatMap((c) => [c, c])),
  },
  { fault: 'delivers a batch backwards', make: (memory) => changing(memory, (changes) => [...changes].reverse()) },
  {
    fault: 'starts a watch from the current revision instead of the requested one',
    make: (memory) =>
      over(memory, {
        watch: async (range, options) =>
          memory.watch(range, { ...options, after: Math.max(options.after, await memory.currentRevision()) }),
      }),
  },
  {
    fault: 'starts a watch one revision too early',
    make: (memory) =>
      over(memory, {
        watch: (range, options) => memory.watch(range, { ...options, after: Math.max(0, options.after - 1) }),
      }),
  },
  {
    fault: 'reports a frontier before the last change below it is delivered',
    make: (memory) =>
      watching(memory, () => {
        let held: readonly Change[] = [];
        return (batch) => {
          const all = [...held, ...batch.changes];
          held = all.slice(-1);
          return { ...batch, changes: all.slice(0, -1) };
        };
      }),
  },
  {
    fault: 'decreases the frontier',
    make: (memory) =>
      watching(memory, () => {
        let flip = false;
        return (batch) => {
          flip = !flip;
          return flip ? batch : { ...batch, frontier: 1 };
        };
      }),
  },
  {
    fault: 'consumes a revision for a failed precondition',
    make: (memory) =>
      over(memory, {
        async write(op, options) {
          const result = await memory.write(op, options);
          if (!result.ok) {
            const { entry } = await memory.get('!burnt');
            await memory.write({ op: 'put', key: '!burnt', value: Buffer.from('x'), expect: entry?.modRevision ?? 0 });
          }
          return result;
        },
      }),
  },
  {
    fault: 'answers a get from a cache that is one call behind',
    make(memory) {
      const cache = new Map<string, Awaited<ReturnType<Store['get']>>>();
      return over(memory, {
        async get(key, options) {
          const fresh = await memory.get(key, options);
          if (options?.revision !== undefined) return fresh;
          const old = cache.get(key);
          cache.set(key, fresh);
          return old ?? fresh;
        },
      });
    },
  },
  {
    fault: 'mixes revisions in the chunks of a list',
    make: (memory) =>
      over(memory, {
        async *list(range, options) {
          if (options?.revision !== undefined || options?.limit !== undefined) {
            yield* memory.list(range, options);
            return;
          }
          let rest = range;
          let revision: number | undefined;
          for (;;) {
            for await (const chunk of memory.list(rest, { ...options, limit: 500 })) {
              revision ??= chunk.revision;
              yield { ...chunk, revision };
              const last = chunk.entries.at(-1);
              if (last === undefined || !chunk.more) return;
              rest = { start: last.key, startExclusive: true, end: range.end };
            }
          }
        },
      }),
  },
  {
    fault: 'removes the slash from a prefix',
    make: (memory) =>
      over(memory, {
        list: (range, options) => memory.list({ ...range, start: range.start.replace(/(.)\/$/, '$1') }, options),
      }),
  },
  {
    fault: 'never sets prev',
    make: (memory) => changing(memory, (changes) => changes.map(({ prev: _, ...change }) => change)),
  },
  {
    fault: 'returns the new entry as prev',
    make: (memory) =>
      changing(memory, (changes) =>
        changes.map((change) =>
          change.prev === undefined || change.entry === undefined ? change : { ...change, prev: change.entry },
        ),
      ),
  },
  { fault: 'ignores compaction', make: (memory) => over(memory, { compact: async () => {} }) },
  {
    fault: 'reports a compacted revision that decreases',
    make(memory) {
      let asked = 0;
      return over(memory, {
        compact: async (upTo) => {
          await memory.compact(upTo);
          asked = upTo;
        },
        compactedRevision: async () => asked,
      });
    },
  },
  {
    fault: 'skips compacted changes instead of failing the watch',
    make: (memory) =>
      over(memory, {
        async watch(range, options) {
          try {
            return await memory.watch(range, options);
          } catch (error) {
            if (!isStorageError(error, 'Compacted')) throw error;
            return memory.watch(range, { ...options, after: await memory.compactedRevision() });
          }
        },
      }),
  },
  {
    fault: 'expires keys early',
    make: (memory) =>
      over(memory, {
        write: (op, options) =>
          memory.write(op.op === 'put' && op.ttlMs !== undefined ? { ...op, ttlMs: op.ttlMs * 0.9 } : op, options),
      }),
  },
  {
    fault: 'never expires keys',
    make: (memory) =>
      over(memory, {
        write(op, options) {
          if (op.op === 'delete') return memory.write(op, options);
          const { ttlMs: _, ...rest } = op;
          return memory.write(rest, options);
        },
      }),
  },
  {
    fault: 'drops deletes from watches',
    make: (memory) => changing(memory, (changes) => changes.filter((c) => c.type !== 'delete')),
  },
  {
    fault: 'lets the last writer win',
    make: (memory) =>
      over(memory, {
        async write(op, options) {
          const { entry } = await memory.get(op.key);
          return memory.write({ ...op, expect: entry?.modRevision ?? 0 }, options);
        },
      }),
  },
  {
    fault: 'reports a failed write as successful',
    make: (memory) =>
      over(memory, {
        async write(op, options) {
          const result = await memory.write(op, options);
          if (result.ok || result.current === undefined) return result;
          return { ok: true, revision: result.revision, createRevision: result.current.createRevision };
        },
      }),
  },
  {
    fault: 'omits the current entry from a failed write',
    make: (memory) =>
      over(memory, {
        async write(op, options) {
          const result = await memory.write(op, options);
          return result.ok ? result : { ...result, current: undefined };
        },
      }),
  },
  {
    fault: 'acknowledges a write before it is executed',
    make(memory) {
      let ahead = 0;
      return over(memory, {
        async write(op, options) {
          const { entry, revision } = await memory.get(op.key);
          if (options !== undefined || (entry?.modRevision ?? 0) !== op.expect || op.op === 'delete')
            return memory.write(op, options);
          ahead = Math.max(ahead, revision) + 1;
          setImmediate(() => void memory.write(op).catch(() => {}));
          return { ok: true, revision: ahead, createRevision: entry?.createRevision ?? ahead };
        },
      });
    },
  },
  {
    fault: 'orders keys by UTF-16 units',
    make: (memory) => entriesOf(memory, (entries) => [...entries].sort((a, b) => (a.key < b.key ? -1 : 1))),
  },
  {
    fault: 'ignores startExclusive',
    make: (memory) =>
      over(memory, { list: (range, options) => memory.list({ start: range.start, end: range.end }, options) }),
  },
  {
    fault: 'reports that no further entries follow',
    make: (memory) =>
      over(memory, {
        async *list(range, options) {
          for await (const chunk of memory.list(range, options)) yield { ...chunk, more: false };
        },
      }),
  },
  {
    fault: 'returns one entry more than the limit',
    make: (memory) =>
      over(memory, {
        list: (range, options) =>
          memory.list(range, options?.limit === undefined ? options : { ...options, limit: options.limit + 1 }),
      }),
  },
  {
    fault: 'ignores the revision of a get',
    make: (memory) =>
      over(memory, {
        get: async (key, options) => ({
          ...(await memory.get(key)),
          revision: options?.revision ?? (await memory.currentRevision()),
        }),
      }),
  },
  {
    fault: 'omits later deleted keys from lists of past revisions',
    make: (memory) =>
      over(memory, {
        async *list(range, options) {
          for await (const chunk of memory.list(range, options)) {
            const living = await Promise.all(
              chunk.entries.map(async ({ key }) => (await memory.get(key)).entry !== undefined),
            );
            yield { ...chunk, entries: chunk.entries.filter((_, i) => living[i]) };
          }
        },
      }),
  },
  {
    fault: 'watches every key',
    make: (memory) => over(memory, { watch: (_, options) => memory.watch({ start: '', end: '\u{10ffff}' }, options) }),
  },
  {
    fault: 'delivers old events to a watch from the future',
    make: (memory) =>
      over(memory, {
        watch: async (range, options) =>
          memory.watch(range, { ...options, after: Math.min(options.after, await memory.currentRevision()) }),
      }),
  },
  {
    fault: 'reports every frontier as reached immediately',
    make: (memory) =>
      over(memory, {
        async watch(range, options) {
          const stream = mappedStream(await memory.watch(range, options), (batch) => batch);
          return Object.defineProperty(stream, 'advanceTo', { value: async () => {} });
        },
      }),
  },
  {
    fault: 'returns the same buffer repeatedly',
    make(memory) {
      const scratch = Buffer.alloc(4 * 1024 * 1024);
      return over(memory, {
        async get(key, options) {
          const answer = await memory.get(key, options);
          if (answer.entry === undefined) return answer;
          scratch.set(answer.entry.value);
          return { ...answer, entry: { ...answer.entry, value: scratch.subarray(0, answer.entry.value.byteLength) } };
        },
        async write(op, options) {
          if (op.op === 'put') scratch.set(op.value.subarray(0, scratch.length));
          return memory.write(op.op === 'put' ? { ...op, value: Buffer.from(op.value) } : op, options);
        },
      });
    },
  },
  {
    fault: 'loses the creation revision of a key',
    make: (memory) =>
      over(memory, {
        async get(key, options) {
          const answer = await memory.get(key, options);
          return answer.entry === undefined
            ? answer
            : { ...answer, entry: { ...answer.entry, createRevision: answer.entry.modRevision } };
        },
      }),
  },
  {
    fault: 'truncates values at 64 KiB',
    make: (memory) =>
      over(memory, {
        write: (op, options) =>
          memory.write(op.op === 'put' ? { ...op, value: op.value.subarray(0, 65_536) } : op, options),
      }),
  },
  {
    fault: 'ignores abort signals',
    make: (memory) =>
      over(memory, {
        write: (op) => memory.write(op),
        watch: (range, { signal: _, ...rest }) => memory.watch(range, rest),
      }),
  },
  { fault: 'continues after close', make: (memory) => over(memory, { close: async () => {} }) },
  {
    fault: 'keeps almost no history',
    make(memory) {
      const small = new MemoryStore({ history: { minChanges: 20, minAgeMs: 0 } });
      return over(small, { close: () => Promise.all([small.close(), memory.close()]).then(() => {}) });
    },
  },
  {
    fault: 'has the identity of every other store',
    make: (memory) => over(memory, { identity: async () => ({ storeId: 'the-store', epoch: 1 }) }),
  },
];
