import { isStorageError, type StorageError, StorageErrorCode } from '@keelson/core';
import { createCachedStorages, type ResourceStorages, type StorageMemory } from '@keelson/core/internal';
import type { Clock, Logger, Metrics, Service } from '@keelson/core/runtime';
import type { Revision, Store, StoreIdentity } from '@keelson/core/storage-adapter';
import type { ReadMode, WatchWindow } from '../config/storage-choice.ts';
import { GuardedStore } from './guarded-store.ts';
import type { KnownStores } from './known-stores.ts';
import type { MadeStore } from './open-storage.ts';
import { StoreTokens, sharedSecret } from './store-tokens.ts';

export interface PlaneStoreOptions {
  readonly name: string;
  readonly made: MadeStore;
  /** The option and the URL without a password, for messages. */
  readonly address?: string | undefined;
  readonly reads: ReadMode;
  readonly watchWindow: WatchWindow;
  /** Memory budgets, which all stores of the plane share. */
  readonly memory: StorageMemory;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Undefined: the identity of the store is not checked. */
  readonly known?: KnownStores | undefined;
  /** Identifies the served kinds: only servers with the same kinds continue each other's lists. */
  readonly configuration: string;
  readonly tokens?: { readonly secret?: Uint8Array; readonly lifetimeMs?: number } | undefined;
}

/** Pause between attempts to open a store that cannot be reached, in milliseconds. */
const reopenMs = 1000;
/** Interval at which a changed revision is recorded, in milliseconds. */
const recordEveryMs = 1000;

/** Key written at each start. Keys of kinds begin with a slash, so no list or watch of objects contains this one. */
export const startKey = '!keelson/start';

/** One store of a plane with its watch cache, identity and continue tokens. Revisions are only meaningful within it. */
export class PlaneStore implements Service {
  readonly name: string;
  readonly reads: ReadMode;
  readonly storages: ResourceStorages;
  readonly tokens: StoreTokens;
  readonly #options: PlaneStoreOptions;
  readonly #logger: Logger;
  readonly #store: GuardedStore;
  /** The step that the start waits for. */
  #phase: string | undefined;
  /** Why the store could not be opened yet. */
  #failure: string | undefined;
  #noted = 0;
  #cancelRecord: (() => void) | undefined;
  #stopping = false;

  constructor(options: PlaneStoreOptions) {
    const { name, made, reads, watchWindow: window, memory, clock, logger, metrics, tokens, configuration } = options;
    this.name = name;
    this.reads = reads;
    this.#options = options;
    this.#logger = logger.child({ store: name });
    this.tokens = new StoreTokens({ clock, configuration, lifeMs: tokens?.lifetimeMs });
    this.#store = new GuardedStore(
      made.store,
      this.#logger,
      (identity, before) => this.#onEpoch(identity, before),
      clock,
    );
    this.storages = createCachedStorages({ store: this.#store, clock, logger: this.#logger, metrics, window, memory });
  }

  get capabilities(): Store['capabilities'] {
    return this.#store.capabilities;
  }

  /** The store itself, for records that are not objects; their keys begin with `!keelson/`. */
  get store(): Store {
    return this.#store;
  }

  /** See {@link Store.failed}. */
  get failed(): Promise<StorageError> | undefined {
    return this.#store.failed;
  }

  /** True while the watch of the store is open and not all calls fail. */
  get healthy(): boolean {
    return this.storages.ready() && !this.#store.health.failing;
  }

  /** Opens the store, checks its identity, and starts its watch cache. */
  async start(): Promise<void> {
    this.#phase = 'is being opened';
    await this.#open();
    try {
      this.#phase = 'is being identified';
      const identity = await this.#recognized();
      this.#store.approve(identity);
      this.#phase = 'reads the secret of continue tokens';
      this.tokens.begin(this.#options.tokens?.secret ?? (await sharedSecret(this.#store, this.#logger)), identity);
      this.#phase = 'opens its stream of changes';
      await this.storages.start();
      this.#phase = undefined;
      this.#scheduleRecord();
    } catch (error) {
      await this.#store.close();
      throw error;
    }
  }

  /** Retries while the store cannot be reached: a database may start later than its servers. */
  async #open(): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      try {
        return await this.#store.ready();
      } catch (error) {
        if (this.#stopping || !isStorageError(error) || error.code !== StorageErrorCode.Unavailable) throw error;
        this.#failure = error.message;
      }
      await new Promise<void>((resolve) => {
        clock.after(reopenMs, resolve);
      });
      if (this.#stopping) throw new Error(`the store ${this.name} was closed before it could be opened`);
    }
  }

  waitingFor(): string | undefined {
    if (this.#phase === undefined) return undefined;
    const { address } = this.#options;
    const store = `the store ${this.name}${address === undefined ? '' : ` (${address})`}`;
    return `${store} ${this.#phase}${this.#failure === undefined ? '' : `; ${this.#failure}`}`;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    try {
      await this.storages.stop();
      this.#cancelRecord?.();
      await this.#note();
    } finally {
      await this.#store.close();
    }
  }

  /** The identity of the store, after checking that it is the recorded store and not behind the recorded revision. */
  async #recognized(): Promise<StoreIdentity> {
    const identity = await this.#store.identity();
    const seen = await this.#recognize(identity);
    const current = await this.#store.currentRevision();
    if (current >= seen) {
      await this.#useRevision();
      await this.#note();
      return identity;
    }
    await this.#store.passOver(seen);
    const renewed = await this.#store.identity();
    await this.#recognize(renewed);
    await this.#store.currentRevision();
    // The revision is recorded before requests are served. Otherwise, after a kill and another restore, the revisions
    // above the gap would be used again.
    if (this.#recordsRevisions) await this.#record();
    return renewed;
  }

  /**
   * Writes a key, so that the store has a new revision, which is recorded in the data directory before requests are
   * served. Every copy of the store from before this start is then behind the recorded revision, even if the server is
   * killed before it records another one. The key is written first: after a crash between the two steps the recorded
   * revision is only behind that of the store. When another server writes the key at the same time, its revision has
   * the same effect. A failure, such as a full disk, does not prevent the start.
   */
  async #useRevision(): Promise<void> {
    if (!this.#recordsRevisions) return;
    try {
      const { entry } = await this.#store.get(startKey);
      const expect = entry?.modRevision ?? 0;
      const value = Buffer.from(new Date(this.#options.clock.now()).toISOString());
      // A damaged record can be deleted but not replaced.
      if (entry?.damaged) await this.#store.write({ op: 'delete', key: startKey, expect });
      else await this.#store.write({ op: 'put', key: startKey, value, expect });
      await this.#store.currentRevision();
    } catch (err) {
      this.#logger.warn('the start revision was not written to the store', { component: 'storage', err });
    }
  }

  /** The greatest recorded revision. It is 0 for a store that is not durable, which is a new one at each start. */
  async #recognize(identity: StoreIdentity): Promise<Revision> {
    const { known, made } = this.#options;
    if (known === undefined || !this.capabilities.durable) return 0;
    const recognition = await known.recognize(this.name, made.adapter, identity);
    if (recognition.outcome === 'accepted')
      this.#logger.warn('a new store was accepted', {
        component: 'storage',
        now: identity.storeId,
        before: recognition.before.storeId,
      });
    if (recognition.outcome === 'restored') this.#logRestored(identity, recognition.before);
    return recognition.seen;
  }

  #scheduleRecord(): void {
    if (!this.#recordsRevisions || this.#stopping) return;
    this.#cancelRecord = this.#options.clock.after(recordEveryMs, () => {
      void this.#note().finally(() => this.#scheduleRecord());
    });
  }

  /** Records the current revision, so that an older copy of the store is detected at the next start. */
  async #note(): Promise<void> {
    if (!this.#recordsRevisions || this.#store.seen <= this.#noted) return;
    try {
      await this.#record();
    } catch (err) {
      this.#logger.warn('the revision of the store was not recorded', { component: 'storage', err });
    }
  }

  /** Whether revisions are recorded: those of a store that is not durable are meaningless at the next start. */
  get #recordsRevisions(): boolean {
    return this.#options.known !== undefined && this.capabilities.durable;
  }

  async #record(): Promise<void> {
    const { known, made } = this.#options;
    const { seen } = this.#store;
    await known?.note(this.name, made.adapter, seen);
    this.#noted = seen;
  }

  #onEpoch(identity: StoreIdentity, before: StoreIdentity): void {
    this.#logRestored(identity, before);
    this.tokens.rebind(identity);
    const { known, made } = this.#options;
    if (!this.capabilities.durable) return;
    known
      ?.recognize(this.name, made.adapter, identity)
      .then(() => this.#note())
      .catch((err: unknown) =>
        this.#logger.warn('the epoch of the store was not recorded', { component: 'storage', err }),
      );
  }

  #logRestored({ epoch }: StoreIdentity, before: StoreIdentity): void {
    this.#logger.warn('the store was restored or failed over: earlier continue tokens and watches are invalid', {
      component: 'storage',
      epoch,
      before: before.epoch,
    });
  }
}
