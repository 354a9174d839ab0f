import { StorageError } from '@keelson/core';
import type { Store } from '@keelson/core/storage-adapter';

/** One server's connection to a store that several servers use. */
export interface Connection {
  readonly store: Store;
  /** From now on no call of this server reaches the store, and no response is returned, as after a crash. */
  cut(): void;
  /** Pauses only the stream of changes. */
  holdStream(held: boolean): void;
}

/**
 * Makes connections to one store in this process, each of which may be opened and closed like a store of its own. The
 * store counts as one that several processes write.
 */
export function shareStore(shared: Store): { connect(): Connection } {
  return { connect: () => connectionTo(shared) };
}

function connectionTo(shared: Store): Connection {
  let closed = false;
  let dead = false;
  let released: Promise<void> = Promise.resolve();
  let release = () => {};
  const ending = new AbortController();
  const guard = <T>(call: () => Promise<T>): Promise<T> => {
    if (closed) return Promise.reject(new StorageError('Closed', 'the store is closed'));
    if (dead) return Promise.reject(new StorageError('Unavailable', 'the store cannot be reached'));
    return call();
  };
  const store: Store = {
    capabilities: { ...shared.capabilities, multiWriter: true },
    ready: () => guard(async () => {}),
    close: async () => {
      closed = true;
      release();
      ending.abort();
    },
    identity: () => guard(() => shared.identity()),
    write: (op, options) => guard(() => shared.write(op, options)),
    get: (key, options) => guard(() => shared.get(key, options)),
    count: (range, options) => guard(() => shared.count(range, options)),
    currentRevision: (options) => guard(() => shared.currentRevision(options)),
    compact: (upTo) => guard(() => shared.compact(upTo)),
    compactedRevision: () => guard(() => shared.compactedRevision()),
    async *list(range, options) {
      await guard(async () => {});
      yield* shared.list(range, options);
    },
    watch: (range, options) =>
      guard(async () => {
        const stream = await shared.watch(range, options);
        ending.signal.addEventListener('abort', () => void stream.close(), { once: true });
        return {
          get frontier() {
            return stream.frontier;
          },
          advanceTo: (revision, rest) => stream.advanceTo(revision, rest),
          close: () => {
            release();
            return stream.close();
          },
          async *[Symbol.asyncIterator]() {
            for await (const batch of stream) {
              await released;
              if (dead) break;
              yield batch;
            }
            throw closed ? new StorageError('Closed', 'the store is closed') : new StorageError('Unavailable', 'cut');
          },
        };
      }),
  };
  return {
    store,
    cut: () => {
      dead = true;
      release();
      ending.abort();
    },
    holdStream: (held) => {
      release();
      if (held)
        released = new Promise((resolve) => {
          release = resolve;
        });
    },
  };
}
