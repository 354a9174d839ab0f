import {
  type Clock,
  createCachedStorages,
  type Logger,
  type Metrics,
  type ResourceStorages,
  type Revision,
  type Service,
  type Store,
  type StoreIdentity,
} from '@keelson/core';
import type { ReadMode } from '../config/storage-choice.ts';
import type { WatchWindow } from '../config/watch-window.ts';
import { GuardedStore } from './guarded-store.ts';
import type { KnownStores } from './known-stores.ts';
import type { MadeStore } from './open-storage.ts';
import { sharedSecret } from './shared-secret.ts';
import { StoreTokens } from './store-tokens.ts';

export interface PlaneStoreOptions {
  readonly name: string;
  readonly made: MadeStore;
  readonly reads: ReadMode;
  readonly watchWindow: WatchWindow;
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

/** One store of a plane with everything that is its own: watch cache, identity, continue tokens. Revisions never leave it. */
export class PlaneStore implements Service {
  readonly name: string;
  readonly reads: ReadMode;
  readonly storages: ResourceStorages;
  readonly tokens: StoreTokens;
  readonly #options: PlaneStoreOptions;
  readonly #logger: Logger;
  readonly #store: GuardedStore;
  #noted = 0;
  #cancelNote: (() => void) | undefined;
  #stopping = false;

  constructor(options: PlaneStoreOptions) {
    const { name, made, reads, watchWindow: window, clock, logger, metrics, tokens, configuration } = options;
    this.name = name;
    this.reads = reads;
    this.#options = options;
    this.#logger = logger.child({ store: name });
    this.tokens = new StoreTokens({ clock, configuration, lifeMs: tokens?.lifetimeMs });
    this.#store = new GuardedStore(made.store, this.#logger, (identity, before) => this.#onEpoch(identity, before));
    this.storages = createCachedStorages({ store: this.#store, clock, logger: this.#logger, metrics, window });
  }

  get capabilities(): Store['capabilities'] {
    return this.#store.capabilities;
  }

  /** Opens the store, makes sure that it is the right one, and begins to follow it. */
  async start(): Promise<void> {
    await this.#store.ready();
    try {
      const identity = await this.#recognized();
      this.#store.approve(identity);
      this.tokens.begin(this.#options.tokens?.secret ?? (await sharedSecret(this.#store)), identity);
      await this.storages.start();
      this.#noteLater();
    } catch (error) {
      await this.#store.close();
      throw error;
    }
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
    if (seen === 0 || (await this.#store.currentRevision()) >= seen) return identity;
    await this.#store.passOver(seen);
    const renewed = await this.#store.identity();
    await this.#recognize(renewed);
    return renewed;
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
    if (this.#options.known === undefined || !this.capabilities.durable || this.#stopping) return;
    this.#cancelNote = this.#options.clock.after(noteEveryMs, () => {
      void this.#note().finally(() => this.#noteLater());
    });
  }

  /** Takes down how far the store has come, so that an older copy in its place is noticed at the next start. */
  async #note(): Promise<void> {
    const { known, made } = this.#options;
    const { seen } = this.#store;
    if (known === undefined || !this.capabilities.durable || seen <= this.#noted) return;
    try {
      await known.note(this.name, made.adapter, seen);
      this.#noted = seen;
    } catch (err) {
      this.#logger.warn('the revision of the store was not written down', { component: 'storage', err });
    }
  }

  #onEpoch(identity: StoreIdentity, before: StoreIdentity): void {
    this.#logRestored(identity, before);
    this.tokens.rebind(identity);
    const { known, made } = this.#options;
    if (!this.capabilities.durable) return;
    known
      ?.recognize(this.name, made.adapter, identity)
      .catch((err: unknown) => this.#logger.warn('the epoch of the store was not written down', { component: 'storage', err }));
  }

  #logRestored({ epoch }: StoreIdentity, before: StoreIdentity): void {
    this.#logger.warn('the store was restored or failed over: continue tokens and watches from before are void', {
      component: 'storage',
      epoch,
      before: before.epoch,
    });
  }
}
