import type { MessagePort } from 'node:worker_threads';
import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type {
  KeyRange,
  ListChunk,
  ReadOptions,
  Revision,
  Store,
  StoreCapabilities,
  WatchBatch,
  WatchStream,
} from '@keelson/core/storage-adapter';
import { Outbox, type StoreAccess, type StoreResponse } from './store-messages.ts';
import { StoreService } from './store-service.ts';

/** The range of all keys: no key begins with the last code point of Unicode. */
const everyKey: KeyRange = { start: '\u0001', end: '\u{10ffff}' };

/**
 * A store of the main thread that worker threads use too. Calls of workers arrive through message ports. The newest
 * revision is in shared memory, so that a consistent read of a worker needs no message. It is set before a write, a
 * read or a batch with that revision is passed on, so that a reader in any thread waits for what another has observed.
 */
export class SharedStore implements Store {
  readonly #store: Store;
  readonly #revision = new BigInt64Array(new SharedArrayBuffer(8));
  readonly #ports = new Set<MessagePort>();
  #published: Revision = 0;
  #following: Promise<void> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  get capabilities(): StoreCapabilities {
    return this.#store.capabilities;
  }

  get failed(): Promise<StorageError> | undefined {
    return this.#store.failed;
  }

  /** Serves a worker through one end of a channel; returns what the worker needs besides the other end. */
  serve(port: MessagePort): Omit<StoreAccess, 'port'> {
    const outbox = new Outbox<StoreResponse>(port);
    const service = new StoreService(this, outbox);
    port.on('message', (post: unknown) => service.receive(post));
    port.once('close', () => {
      service.abort('reads');
      this.#ports.delete(port);
    });
    this.#ports.add(port);
    return { revision: this.#revision.buffer as SharedArrayBuffer, capabilities: this.capabilities };
  }

  identity: Store['identity'] = () => this.#store.identity();
  compactedRevision: Store['compactedRevision'] = () => this.#store.compactedRevision();
  compact: Store['compact'] = (upTo) => this.#store.compact(upTo);
  count: Store['count'] = (range, options) => this.#store.count(range, options).then(this.#publishOf);
  write: Store['write'] = (op, options) => this.#store.write(op, options).then(this.#publishOf);
  get: Store['get'] = (key, options) => this.#store.get(key, options).then(this.#publishOf);

  async ready(options?: Parameters<Store['ready']>[0]): Promise<void> {
    await this.#store.ready(options);
    this.#following ??= this.#follow(await this.currentRevision());
  }

  async currentRevision(options?: ReadOptions): Promise<Revision> {
    const revision = await this.#store.currentRevision(options);
    this.#publish(revision);
    return revision;
  }

  async *list(...args: Parameters<Store['list']>): AsyncGenerator<ListChunk, void, undefined> {
    for await (const chunk of this.#store.list(...args)) yield this.#publishOf(chunk);
  }

  async watch(...args: Parameters<Store['watch']>): Promise<WatchStream> {
    const stream = await this.#store.watch(...args);
    const publish = ({ frontier }: WatchBatch) => this.#publish(frontier);
    return {
      get frontier() {
        return stream.frontier;
      },
      advanceTo: (...call) => stream.advanceTo(...call),
      close: () => stream.close(),
      [Symbol.asyncIterator]() {
        const batches = stream[Symbol.asyncIterator]();
        const end = batches.return?.bind(batches);
        const next = async () => {
          const result = await batches.next();
          if (!result.done) publish(result.value);
          return result;
        };
        return end ? { next, return: end } : { next };
      },
    };
  }

  async passOver(seen: Revision): Promise<void> {
    const { passOver } = this.#store;
    if (passOver === undefined)
      throw new StorageError(
        StorageErrorCode.Unavailable,
        'the adapter of the store cannot skip the revisions of an earlier state (passOver)',
      );
    await passOver.call(this.#store, seen);
    await this.currentRevision();
  }

  async close(): Promise<void> {
    await this.#store.close();
    for (const port of this.#ports) port.close();
  }

  /** Publishes changes without a request: those of keys that expire. */
  async #follow(from: Revision): Promise<void> {
    for (let after = from; ; ) {
      try {
        const stream = await this.#store.watch(everyKey, { after });
        for await (const { frontier } of stream) {
          this.#publish(frontier);
          after = frontier;
        }
        return;
      } catch (error) {
        if (!isStorageError(error, StorageErrorCode.Compacted)) return;
        after = await this.currentRevision();
      }
    }
  }

  readonly #publishOf = <T extends { readonly revision: Revision }>(result: T): T => {
    this.#publish(result.revision);
    return result;
  };

  #publish(revision: Revision): void {
    if (revision <= this.#published) return;
    this.#published = revision;
    Atomics.store(this.#revision, 0, BigInt(revision));
  }
}
