import type { KubeObject } from '@keelson/core';
import type { Informer } from './informer.ts';

/** Returns the values of an object in an index; none for objects that are not in the index. */
export type IndexFunction<K> = (kept: K) => readonly string[];

/** Reads from an informer's cache. Returned objects are shared and must not be modified. */
export interface Lister<K, I extends string = never> {
  /** An object by `namespace/name`, or by `name` for cluster-scoped kinds. */
  get(key: string): K | undefined;
  list(): K[];
  /** The objects with a value in an index. */
  by(index: I, value: string): K[];
  /** Keys of the objects with a value in an index. */
  keysBy(index: I, value: string): string[];
  /** All values of an index. */
  valuesOf(index: I): string[];
  /** Stops updating the indexes; reads continue to return the last state. */
  close(): void;
}

class Index<K> {
  readonly #valuesOf: IndexFunction<K>;
  readonly #keys = new Map<string, Set<string>>();
  /**
   * The values under which an object was added, so that it is removed from all of them even if the index function is
   * not deterministic.
   */
  readonly #entered = new Map<string, readonly string[]>();

  constructor(valuesOf: IndexFunction<K>) {
    this.#valuesOf = valuesOf;
  }

  put(key: string, kept: K): void {
    this.remove(key);
    const values = this.#valuesOf(kept);
    if (values.length === 0) return;
    this.#entered.set(key, values);
    for (const value of values) {
      const keys = this.#keys.get(value);
      if (keys) keys.add(key);
      else this.#keys.set(value, new Set([key]));
    }
  }

  remove(key: string): void {
    for (const value of this.#entered.get(key) ?? []) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
    this.#entered.delete(key);
  }

  keys(value: string): string[] {
    return [...(this.#keys.get(value) ?? [])];
  }

  values(): string[] {
    return [...this.#keys.keys()];
  }
}

/**
 * Finds objects of an informer by indexes. The indexes are up to date whenever a handler of the informer is called, in
 * any order of registration.
 */
export function createLister<
  T extends KubeObject,
  K,
  const X extends Readonly<Record<string, IndexFunction<K>>> = Record<never, never>,
>(informer: Informer<T, K>, { indexes }: { readonly indexes?: X } = {}): Lister<K, Extract<keyof X, string>> {
  const maintained = new Map(Object.entries(indexes ?? {}).map(([name, valuesOf]) => [name, new Index<K>(valuesOf)]));
  const put = (kept: K, key: string) => {
    for (const index of maintained.values()) index.put(key, kept);
  };
  const close = informer.addHandlers(
    {
      added: put,
      updated: (kept, _before, key) => put(kept, key),
      deleted: (_kept, key) => {
        for (const index of maintained.values()) index.remove(key);
      },
    },
    { first: true },
  );
  const indexOf = (name: string): Index<K> => {
    const index = maintained.get(name);
    if (index === undefined) throw new Error(`the lister has no index ${JSON.stringify(name)}`);
    return index;
  };
  return {
    get: (key) => informer.get(key),
    list: () => [...informer.values()],
    by: (name, value) =>
      indexOf(name)
        .keys(value)
        .map((key) => informer.get(key))
        .filter((kept) => kept !== undefined),
    keysBy: (name, value) => indexOf(name).keys(value),
    valuesOf: (name) => indexOf(name).values(),
    close,
  };
}

/** Index by namespace. */
export function byNamespace(object: KubeObject): readonly string[] {
  const { namespace } = object.metadata ?? {};
  return namespace === undefined || namespace === '' ? [] : [namespace];
}

/** Index by the uid of every owner. */
export function byOwnerUid(object: KubeObject): readonly string[] {
  return object.metadata?.ownerReferences?.map(({ uid }) => uid) ?? [];
}

/** Index by the uid of the one owner that controls the object. */
export function byControllerUid(object: KubeObject): readonly string[] {
  const owner = object.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return owner === undefined ? [] : [owner.uid];
}

/** Index by the value of a label. */
export function byLabel(key: string): IndexFunction<KubeObject> {
  return (object) => {
    const labels = object.metadata?.labels ?? {};
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    return value === undefined ? [] : [value];
  };
}
