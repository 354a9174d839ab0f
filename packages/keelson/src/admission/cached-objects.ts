import type { KindDefinition, KubeObject } from '@keelson/core';
import { kindPrefix, objectKey, type ResourceStorage, type StoredObject } from '@keelson/core/internal';

/** Returns the storage of a kind. */
export interface StorageOfKind {
  forKind(kind: KindDefinition): ResourceStorage;
}

/** Selects all objects. */
export const predicate = { everything: true, id: '', matches: () => true };

/**
 * Objects that admission plugins apply, from the watch cache: without a call of the store, and possibly some
 * milliseconds old. Objects are shared and must not be modified.
 */
export class CachedObjects {
  readonly #storages: StorageOfKind;
  readonly #kinds = new Map<KindDefinition, { readonly storage: ResourceStorage; readonly prefix: string }>();
  /** The cache returns the same instance until the object changes, so each state is parsed once. */
  readonly #values = new WeakMap<StoredObject, KubeObject>();

  constructor(storages: StorageOfKind) {
    this.#storages = storages;
  }

  /** All objects of a kind, in one namespace or in the cluster. A promise only when the cache is not loaded. */
  list<T extends KubeObject>(kind: KindDefinition<T>, namespace?: string): readonly T[] | Promise<readonly T[]> {
    let known = this.#kinds.get(kind);
    if (known === undefined) {
      known = { storage: this.#storages.forKind(kind), prefix: kindPrefix(kind) };
      this.#kinds.set(kind, known);
    }
    const { storage } = known;
    const prefix = namespace === undefined ? known.prefix : `${known.prefix}${namespace}/`;
    const cached = storage.cached?.list(prefix);
    if (cached !== undefined) return cached.map((object) => this.#valueOf<T>(object));
    return storage
      .list(prefix, { at: { at: 'any' }, predicate })
      .then((list) => Array.from(list.objects(), (object) => this.#valueOf<T>(object)));
  }

  /** A cluster-scoped object; one that is not in the cache is read from the store. */
  async get<T extends KubeObject>(kind: KindDefinition<T>, name: string): Promise<T | undefined> {
    const storage = this.#storages.forKind(kind);
    const key = objectKey(kind, undefined, name);
    const stored = (await storage.get(key, { at: 'any' })) ?? (await storage.get(key, { at: 'latest' }));
    return stored && this.#valueOf<T>(stored);
  }

  #valueOf<T extends KubeObject>(stored: StoredObject): T {
    let value = this.#values.get(stored);
    if (value === undefined) {
      value = stored.value();
      this.#values.set(stored, value);
    }
    return value as T;
  }
}
