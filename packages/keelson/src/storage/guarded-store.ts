import {
  type Clock,
  type Key,
  type ListChunk,
  type Logger,
  type Revision,
  StorageError,
  StorageErrorCode,
  type Store,
  type StoreIdentity,
  systemClock,
  type WatchStream,
  type WriteResult,
} from '@keelson/core';
import { StoreHealth } from './store-health.ts';

/** Told when a store is seen to have lost or rewound history. */
export type EpochListener = (identity: StoreIdentity, before: StoreIdentity) => void;

/**
 * A store that stays the one it was when it was approved. Whoever follows the store asks for its identity whenever the
 * stream of changes broke; when another store answers under the same address from then on, every call fails with
 * `Unavailable` until the approved one is back.
 */
export class GuardedStore implements Store {
  readonly #store: Store;
  readonly #logger: Logger;
  readonly #onEpoch: EpochListener;
  /** Whether the store works, as its calls show. */
  readonly health: StoreHealth;
  #approved: StoreIdentity | undefined;
  #foreign: StoreIdentity | undefined;
  #seen: Revision = 0;
  /** The one that follows the whole store. */
  #feed: WatchStream | undefined;

  constructor(store: Store, logger: Logger, onEpoch: EpochListener, clock: Clock = systemClock) {
    this.health = new StoreHealth(clock, logger, () => store.currentRevision());
    this.#store = store;
    this.#logger = logger;
    this.#onEpoch = onEpoch;
  }

  get capabilities(): Store['capabilities'] {
    return this.#store.capabilities;
  }

  get failed(): Promise<StorageError> | undefined {
    return this.#store.failed;
  }

  /** The newest revision that anybody can have learned of through this store. */
  get seen(): Revision {
    return Math.max(this.#seen, this.#feed?.frontier ?? 0);
  }

  /** From now on only this store will do. */
  approve(identity: StoreIdentity): void {
    this.#approved = identity;
  }

  async identity(): Promise<StoreIdentity> {
    const identity = await this.#store.identity();
    const approved = this.#approved;
    if (approved === undefined) return identity;
    if (identity.storeId !== approved.storeId) {
      if (this.#foreign?.storeId !== identity.storeId)
        this.#logger.error('another store has taken the place of this one', {
          component: 'storage',
          expected: approved.storeId,
          found: identity.storeId,
        });
      this.#foreign = identity;
      throw this.#refusal(identity);
    }
    this.#foreign = undefined;
    if (identity.epoch !== approved.epoch) {
      this.#approved = identity;
      this.#onEpoch(identity, approved);
    }
    return identity;
  }

  ready: Store['ready'] = (options) => this.#observed(this.#store.ready(options));
  close: Store['close'] = () => {
    this.health.stop();
    return this.#store.close();
  };
  write: Store['write'] = (op, options) =>
    this.#own ??
    this.#store.write(op, options).then(this.#noted, (error: unknown) => this.#reported(error, options?.signal));

  get: Store['get'] = (key, options) => this.#own ?? this.#observed(this.#store.get(key, options), options?.signal);
  count: Store['count'] = (range, options) =>
    this.#own ?? this.#observed(this.#store.count(range, options), options?.signal);
  currentRevision: Store['currentRevision'] = async (options) => {
    const revision = await (this.#own ?? this.#observed(this.#store.currentRevision(options), options?.signal));
    this.#saw(revision);
    return revision;
  };

  watch: Store['watch'] = async (range, options) => {
    const stream = await (this.#own ?? this.#observed(this.#store.watch(range, options), options.signal));
    // Others begin in the past or follow a part of the store: they are never ahead of it.
    if (range.start === '/') {
      this.#saw(this.seen);
      this.#feed = stream;
    }
    return stream;
  };

  compact: Store['compact'] = (upTo) => this.#own ?? this.#observed(this.#store.compact(upTo));
  compactedRevision: Store['compactedRevision'] = () => this.#own ?? this.#store.compactedRevision();

  list: Store['list'] = (range, options) => {
    if (this.#foreign !== undefined) throw this.#refusal(this.#foreign);
    return this.#listed(this.#store.list(range, options), options?.signal);
  };

  /** @throws StorageError `Unavailable` when the adapter has no way, or not this time. */
  async passOver(seen: Revision): Promise<void> {
    if (this.#store.passOver === undefined) {
      throw new StorageError(
        StorageErrorCode.Unavailable,
        `the store is at revision ${await this.#store.currentRevision()}, but has been at ${seen}: an older copy was put in its place, and its adapter ` +
          'cannot go on above it; restore the newer one, or stop all clients and start once with --accept-new-store',
      );
    }
    await this.#store.passOver(seen);
  }

  async *#listed(
    chunks: AsyncIterable<ListChunk>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ListChunk, void, undefined> {
    try {
      for await (const chunk of chunks) {
        for (const { key, damaged } of chunk.entries) if (damaged) this.#reportDamage(key);
        yield chunk;
      }
      this.health.succeeded();
    } catch (error) {
      this.#reported(error, signal);
    }
  }

  #reportDamage(key: Key): void {
    this.health.failed(new StorageError(StorageErrorCode.Corrupt, `the record of ${key} is damaged`, { key }));
  }

  #observed<T>(call: Promise<T>, signal?: AbortSignal): Promise<T> {
    return call.then(
      (answer) => {
        this.health.succeeded();
        return answer;
      },
      (error: unknown) => this.#reported(error, signal),
    );
  }

  #reported(error: unknown, signal: AbortSignal | undefined): never {
    this.health.failed(error, signal);
    throw error;
  }

  readonly #noted = (result: WriteResult): WriteResult => {
    this.health.succeeded();
    this.#saw(result.revision);
    return result;
  };

  #saw(revision: Revision): void {
    if (revision > this.#seen) this.#seen = revision;
  }

  /** Undefined while the store is the approved one. */
  get #own(): Promise<never> | undefined {
    return this.#foreign === undefined ? undefined : Promise.reject(this.#refusal(this.#foreign));
  }

  #refusal({ storeId }: StoreIdentity): StorageError {
    return new StorageError(
      StorageErrorCode.Unavailable,
      `the store is ${storeId}, not ${this.#approved?.storeId}, with which this server was started`,
    );
  }
}
