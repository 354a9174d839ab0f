import type { Change, Entry, ListChunk, Store, WatchBatch, WatchStream } from '@keelson/core/storage-adapter';

/** A store whose results are monitored: see {@link frozenStore}. */
export interface FrozenStore {
  readonly store: Store;
  /** Throws when returned bytes were changed later, by the store or by its caller. */
  verify(): void;
}

/**
 * Wraps a store so that changes of its results are detected: entries, changes and batches are frozen; values cannot be
 * frozen, so that copies of them are kept and compared. This detects a store that reuses its buffers, and a caller that
 * writes into a result.
 */
export function frozenStore(inner: Store): FrozenStore {
  const handedOut = new Map<Uint8Array, Buffer>();

  const entry = <E extends Entry | undefined>(value: E): E => {
    if (value !== undefined && !handedOut.has(value.value)) handedOut.set(value.value, Buffer.from(value.value));
    return Object.freeze(value);
  };
  const change = (value: Change): Change => {
    entry(value.entry);
    entry(value.prev);
    return Object.freeze(value);
  };
  const batch = (value: WatchBatch): WatchBatch => {
    value.changes.forEach(change);
    Object.freeze(value.changes);
    return Object.freeze(value);
  };
  const chunk = (value: ListChunk): ListChunk => {
    value.entries.forEach(entry);
    Object.freeze(value.entries);
    return Object.freeze(value);
  };
  const stream = (value: WatchStream): WatchStream => ({
    get frontier() {
      return value.frontier;
    },
    advanceTo: (revision, options) => value.advanceTo(revision, options),
    close: () => value.close(),
    [Symbol.asyncIterator]: () => mapped(value[Symbol.asyncIterator](), batch),
  });

  const store: Store = {
    capabilities: inner.capabilities,
    identity: () => inner.identity(),
    async write(op, options) {
      const result = await inner.write(op, options);
      if (!result.ok) entry(result.current);
      return Object.freeze(result);
    },
    async get(key, options) {
      const answer = await inner.get(key, options);
      entry(answer.entry);
      return Object.freeze(answer);
    },
    list: (range, options) => ({
      [Symbol.asyncIterator]: () => mapped(inner.list(range, options)[Symbol.asyncIterator](), chunk),
    }),
    count: (range, options) => inner.count(range, options),
    currentRevision: (options) => inner.currentRevision(options),
    watch: async (range, options) => stream(await inner.watch(range, options)),
    compact: (upTo) => inner.compact(upTo),
    compactedRevision: () => inner.compactedRevision(),
    ready: () => inner.ready(),
    close: () => inner.close(),
  };

  return {
    store,
    verify() {
      for (const [now, then] of handedOut) {
        if (!then.equals(now))
          throw new Error(`bytes changed after they were handed out: ${then.subarray(0, 40).toString()}`);
      }
    },
  };
}

/** Returns an iterator that passes every value through `map`. */
export function mapped<T>(inner: AsyncIterator<T>, map: (value: T) => T): AsyncIterator<T> {
  return {
    async next() {
      const result = await inner.next();
      return result.done === true ? result : { done: false, value: map(result.value) };
    },
    async return() {
      await inner.return?.();
      return { done: true, value: undefined };
    },
  };
}
