import type { KindDefinition, StorageError } from '@keelson/core';
import type { ContinueTokens, ResourceStorages } from '@keelson/core/internal';
import type { StoreOfKind } from './kind-routes.ts';
import type { PlaneStore } from './plane-store.ts';

/** A health check. */
export interface StoreCheck {
  readonly name: string;
  readonly check: () => boolean;
}

/** All stores of a plane. */
export class PlaneStores implements ResourceStorages {
  /** The default store first. */
  readonly all: readonly PlaneStore[];
  readonly #byName: ReadonlyMap<string, PlaneStore>;
  readonly #storeOf: StoreOfKind;

  constructor(stores: readonly PlaneStore[], storeOf: StoreOfKind) {
    this.all = stores;
    this.#byName = new Map(stores.map((store) => [store.name, store]));
    this.#storeOf = storeOf;
  }

  of(kind: KindDefinition): PlaneStore {
    const store = this.#byName.get(this.#storeOf(kind));
    if (store === undefined) throw new Error(`there is no store for ${kind.names.plural}`);
    return store;
  }

  forKind(kind: KindDefinition): ReturnType<ResourceStorages['forKind']> {
    return this.of(kind).storages.forKind(kind);
  }

  tokensOf(kind: KindDefinition): ContinueTokens {
    return this.of(kind).tokens;
  }

  ready(): boolean {
    return this.all.every((store) => store.healthy);
  }

  /** One check per store; that of the default store is named `storage`. */
  checks(): StoreCheck[] {
    return this.all.map((store, i) => ({
      name: i === 0 ? 'storage' : `storage-${store.name}`,
      check: () => store.healthy,
    }));
  }

  /** Resolves with the reason when one of the stores has failed permanently. */
  failed(): Promise<StorageError> {
    return Promise.race(this.all.flatMap(({ failed }) => failed ?? []));
  }

  /** Opens every store; when one fails, all are closed. */
  async start(): Promise<void> {
    const results = await Promise.allSettled(this.all.map((store) => store.start()));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return;
    await this.stop();
    throw failed.reason;
  }

  /** The steps that the start waits for. */
  waitingFor(): string | undefined {
    return this.all.flatMap((store) => store.waitingFor() ?? []).join(', ') || undefined;
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((store) => store.stop()));
  }
}
