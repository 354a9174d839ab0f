import {
  type Clock,
  createCachedStorages,
  type Logger,
  type Metrics,
  type ResourceStorages,
  type Revision,
  type Service,
  type StorageError,
  type StorageMemory,
  type Store,
  type StoreIdentity,
} from '@keelson/core';
import type { ReadMode, WatchWindow } from '../config/storage-choice.ts';
import { GuardedStore } from './guarded-store.ts';
import type { KnownStores } from './known-stores.ts';
import type { MadeStore } from './open-storage.ts';
import { StoreTokens, sharedSecret } from './store-tokens.ts';

export interface PlaneStoreOptions {
  readonly name: string;
  readonly made: MadeStore;
  readonly reads: ReadMode;
  readonly watchWindow: WatchWindow;
  /** Shared by all stores of the plane. */
  readonly memory: StorageMemory;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Absent = whatever store answers is the right one. */
  readonly known?: KnownStores | undefined;
  /** Names the kinds that are served: a page is continued by servers only that serve the same ones. */
  readonly configuration: string;
  readonly tokens?: { readonly secret?: Uint8Array; readonly lifetimeMs?: number } | undefined;
}

/** How often the revision that the store has come to is taken down, if it moves. */
const noteEveryMs = 1000;

/** Written at each start. Keys of kinds begin with a slash, so no list or watch of objects contains this one. */
export const startKey = '!keelson/start';

/**
 * One store of a plane with everything that is its own: watch cache, identity, continue tokens. Revisions never leave
 * it.
 */
export class PlaneStore implements Service {
  readonly name: string;
  readonly reads: ReadMode;
  readonly storages: ResourceStorages;
  readonly tokens: StoreTokens;
  readonly #options: PlaneStoreOptions;
  readonly #logger: Logger;
  readonly #store: GuardedStore;
  /** What the start waits for. */
  #phase: string | undefined;
  #noted = 0;
  #cancelNote: (() => void) | undefined;
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

  /** See {@link Store.failed}. */
  get failed(): Promise<StorageError> | undefined {
    return this.#store.failed;
  }

  /** True while the store can be followed and not every call of it fails. */
  get healthy(): boolean {
    return this.storages.ready() && !this.#store.health.failing;
  }

  /** Opens the store, makes sure that it is the right one, and begins to follow it. */
  async start(): Promise<void> {
    this.#phase = 'is being opened';
    await this.#store.ready();
    try {
      this.#phase = 'is being identified';
      const identity = await this.#recognized();
      this.#store.approve(identity);
      this.#phase = 'is asked for the secret of continue tokens';
      this.tokens.begin(this.#options.tokens?.secret ?? (await sharedSecret(this.#store)), identity);
      this.#phase = 'is asked for its changes';
      await this.storages.start();
      this.#phase = undefined;
      this.#noteLater();
    } catch (error) {
      await this.#store.close();
      throw error;
    }
  }

  waitingFor(): string | undefined {
    return this.#phase === undefined ? undefined : `the store ${this.name} ${this.#phase}`;
  }

  async stop(): Promise<void> {
    try {
      await this.storages.stop();
      this.#stopping = true;
      this.#cancelNote?.();
      await this.#note();
    } finally {
      await this.#store.close();
    }
  }

  /** The identity, once the store is known to be the right one and not behind what it has been before. */
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
    // A client that is served a revision above the gap, a kill and another restore must not lead to the same revisions
    // once more.
    if (this.#remembers) await this.#record();
    return renewed;
  }

  /**
   * Uses a revision, which is recorded before anything is served. So every copy of the store from before this start is
   * behind the record, even if the server is killed before it records another revision. The write comes first: a crash
   * before the record only leaves the record behind the store. When the write of another server wins, the revision of
   * that one serves as well. A full disk does not prevent the start.
   */
  async #useRevision(): Promise<void> {
    if (!this.#remembers) return;
    try {
      const { entry } = await this.#store.get(startKey);
      const expect = entry?.modRevision ?? 0;
      const value = Buffer.from(new Date(this.#options.clock.now()).toISOString());
      // A damaged record can be deleted, but not replaced.
      if (entry?.damaged) await this.#store.write({ op: 'delete', key: startKey, expect });
      else await this.#store.write({ op: 'put', key: startKey, value, expect });
      await this.#store.currentRevision();
    } catch (err) {
      this.#logger.warn('the start of the server was not written to the store', { component: 'storage', err });
    }
  }

  /** A store that does not outlive its process is a new one each time, so there is nothing to compare. */
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

  #noteLater(): void {
    if (!this.#remembers || this.#stopping) return;
    this.#cancelNote = this.#options.clock.after(noteEveryMs, () => {
      void this.#note().finally(() => this.#noteLater());
    });
  }

  /** Takes down how far the store has come, so that an older copy in its place is noticed at the next start. */
  async #note(): Promise<void> {
    if (!this.#remembers || this.#store.seen <= this.#noted) return;
    try {
      await this.#record();
    } catch (err) {
      this.#logger.warn('the revision of the store was not written down', { component: 'storage', err });
    }
  }

  /**
   * Whether revisions are recorded: those of a store that does not outlive its process mean nothing to the next one.
   */
  get #remembers(): boolean {
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
        this.#logger.warn('the epoch of the store was not written down', { component: 'storage', err }),
      );
  }

  #logRestored({ epoch }: StoreIdentity, before: StoreIdentity): void {
    this.#logger.warn('the store was restored or failed over: continue tokens and watches from before are void', {
      component: 'storage',
      epoch,
      before: before.epoch,
    });
  }
}
