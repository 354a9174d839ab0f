import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import { type Clock, type Logger, systemClock } from '@keelson/core/runtime';
import type {
  Key,
  ListChunk,
  Revision,
  Store,
  StoreIdentity,
  WatchStream,
  WriteResult,
} from '@keelson/core/storage-adapter';
import { RepeatedCauses } from '../observe/repeated-causes.ts';

/** A store without a successful call for this time counts as failing. */
const failingMs = 5_000;
const probeEveryMs = 1_000;

/** Errors that a working store reports. */
const answers: readonly string[] = [
  StorageErrorCode.NotFound,
  StorageErrorCode.AlreadyExists,
  StorageErrorCode.Conflict,
  StorageErrorCode.Compacted,
  StorageErrorCode.FutureRevision,
  StorageErrorCode.EpochChanged,
  StorageErrorCode.TooLarge,
  StorageErrorCode.InvalidKey,
  StorageErrorCode.InvalidToken,
  StorageErrorCode.ExpiredToken,
  StorageErrorCode.SlowConsumer,
  StorageErrorCode.Closed,
];

/**
 * Derives the health of a store from its calls. It reports each cause of failures once and then at intervals, and
 * detects that no call has succeeded for several seconds. From the first failure to the next success the store is
 * probed every second, so that a recovery is detected without other calls.
 */
export class StoreHealth {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #probe: () => Promise<unknown>;
  readonly #causes: RepeatedCauses;
  #failingSince: number | undefined;
  #cancel: (() => void) | undefined;
  #stopped = false;

  /** @param probe reads from the store without reporting the result to this object */
  constructor(clock: Clock, logger: Logger, probe: () => Promise<unknown>) {
    this.#clock = clock;
    this.#causes = new RepeatedCauses(clock);
    this.#logger = logger;
    this.#probe = probe;
  }

  /** True when every read and write has failed for several seconds. */
  get failing(): boolean {
    return this.#failingSince !== undefined && this.#clock.monotonic() - this.#failingSince >= failingMs;
  }

  succeeded(): void {
    if (this.#failingSince === undefined) return;
    const seconds = Math.round((this.#clock.monotonic() - this.#failingSince) / 1000);
    this.#failingSince = undefined;
    this.#cancel?.();
    this.#cancel = undefined;
    if (seconds >= failingMs / 1000)
      this.#logger.info('the store is available again', { component: 'storage', seconds });
  }

  /** @param signal of the call; an aborted call is not a failure of the store */
  failed(error: unknown, signal?: AbortSignal): void {
    if (signal?.aborted || this.#stopped) return;
    const code = isStorageError(error) ? error.code : undefined;
    if (code !== undefined && answers.includes(code)) return;
    this.#report(error, code);
    // An unreadable record or a slow write is not a failure of the whole store.
    if (code === StorageErrorCode.Corrupt || code === StorageErrorCode.Timeout) return;
    this.#failingSince ??= this.#clock.monotonic();
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  #report(error: unknown, code: string | undefined): void {
    const reason = reasonOf(error);
    const repeated = this.#causes.admit(`${code} ${reason}`);
    if (repeated === undefined) return;
    const fields = { ...(code === undefined ? {} : { code }), reason, ...(repeated > 0 ? { repeated } : {}) };
    this.#logger.warn('the store failed', { component: 'storage', ...fields });
  }

  #arm(): void {
    if (this.#stopped || this.#cancel !== undefined) return;
    this.#cancel = this.#clock.after(probeEveryMs, () => {
      this.#probe().then(
        () => this.#probed(() => this.succeeded()),
        (error: unknown) => this.#probed(() => this.failed(error)),
      );
    });
  }

  /** The next probe starts after the result of this one. */
  #probed(outcome: () => void): void {
    this.#cancel = undefined;
    outcome();
  }
}

/** The messages of an error and its causes, without repetitions. */
export function reasonOf(error: unknown): string {
  const texts: string[] = [];
  for (
    let each = error;
    each !== undefined && each !== null && texts.length < 5;
    each = (each as { cause?: unknown }).cause
  ) {
    const text = each instanceof Error ? each.message : String(each);
    if (text !== '' && !texts.some((known) => known.includes(text))) texts.push(text);
  }
  return texts.join(': ');
}

/** Called when a store has lost or rewound history. */
export type EpochListener = (identity: StoreIdentity, before: StoreIdentity) => void;

/**
 * A store that must keep its identity. The identity is checked whenever the stream of changes was interrupted. While
 * another store responds at the same address, every call fails with `Unavailable`.
 */
export class GuardedStore implements Store {
  readonly #store: Store;
  readonly #logger: Logger;
  readonly #onEpoch: EpochListener;
  /** Health of the store, derived from its calls. */
  readonly health: StoreHealth;
  #approved: StoreIdentity | undefined;
  #foreign: StoreIdentity | undefined;
  #seen: Revision = 0;
  /** The watch of the whole store. */
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

  /** The newest revision that a caller can have observed through this store. */
  get seen(): Revision {
    return Math.max(this.#seen, this.#feed?.frontier ?? 0);
  }

  /** Sets the only accepted identity. */
  approve(identity: StoreIdentity): void {
    this.#approved = identity;
  }

  async identity(): Promise<StoreIdentity> {
    const identity = await this.#store.identity();
    const approved = this.#approved;
    if (approved === undefined) return identity;
    if (identity.storeId !== approved.storeId) {
      if (this.#foreign?.storeId !== identity.storeId)
        this.#logger.error('another store responds at the address of this store', {
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
    // Other watches begin at older revisions or cover a part of the store, so they never observe newer ones.
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

  /** @throws StorageError `Unavailable` when the adapter does not support it, or when it fails */
  async passOver(seen: Revision): Promise<void> {
    if (this.#store.passOver === undefined) {
      throw new StorageError(
        StorageErrorCode.Unavailable,
        `the store is at revision ${await this.#store.currentRevision()}, but has been at ${seen}: ` +
          'it was replaced by an older copy, and its adapter cannot skip the missing revisions; ' +
          'restore the newer one, or stop all clients and start once with --accept-new-store',
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

  /** A rejected promise while another store responds, otherwise undefined. */
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
