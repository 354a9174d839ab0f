import type { KubeObject } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import type { InformerHandlers } from './informer-handlers.ts';

/** The cached state of one object. */
interface Entry<K> {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly kept: K;
}

export interface ObjectMirrorOptions<T extends KubeObject, K> {
  readonly keep: (object: T) => K;
  /** Selects the objects that are cached. Undefined: all objects. */
  readonly remember?: (kept: K) => boolean;
  readonly logger: Logger;
  /** Name for log entries. */
  readonly resource: string;
}

/** The cached objects of an informer, and its handlers. */
export class ObjectMirror<T extends KubeObject, K> {
  readonly #options: ObjectMirrorOptions<T, K>;
  readonly #entries = new Map<string, Entry<K>>();
  #handlers: readonly InformerHandlers<K>[] = [];

  constructor(options: ObjectMirrorOptions<T, K>) {
    this.#options = options;
  }

  get(key: string): K | undefined {
    return this.#entries.get(key)?.kept;
  }

  *values(): IterableIterator<K> {
    for (const { kept } of this.#entries.values()) yield kept;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Adds handlers and calls `added` for all cached objects. */
  addHandlers(handlers: InformerHandlers<K>, { first = false }: { readonly first?: boolean } = {}): () => void {
    for (const [key, { kept }] of this.#entries) this.#notify(() => handlers.added?.(kept, key), key);
    this.#handlers = first ? [handlers, ...this.#handlers] : [...this.#handlers, handlers];
    return () => {
      this.#handlers = this.#handlers.filter((other) => other !== handlers);
    };
  }

  /** Processes the current state of an object. A version that is already cached is not a change. */
  put(key: string, object: T): void {
    const { uid, resourceVersion } = object.metadata ?? {};
    const before = this.#entries.get(key);
    if (before !== undefined && resourceVersion !== undefined) {
      if (before.resourceVersion === resourceVersion && before.uid === uid) return;
    }
    const { keep, remember } = this.#options;
    const kept = keep(object);
    if (remember?.(kept) === false) {
      if (before === undefined) return;
      this.#entries.delete(key);
      for (const handlers of this.#handlers) this.#notify(() => handlers.updated?.(kept, before.kept, key), key);
      return;
    }
    this.#entries.set(key, { uid, resourceVersion, kept });
    for (const handlers of this.#handlers) {
      this.#notify(
        () => (before === undefined ? handlers.added?.(kept, key) : handlers.updated?.(kept, before.kept, key)),
        key,
      );
    }
  }

  /**
   * Removes a deleted object with its last state. Handlers are not called for an object that was never cached, unless
   * not all objects are remembered.
   */
  remove(key: string, last: T): void {
    if (this.#entries.delete(key) || this.#options.remember !== undefined)
      this.#notifyDeleted(key, this.#options.keep(last));
  }

  /** Removes all objects except those with these keys. Handlers receive the last cached states. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const [key, { kept }] of this.#entries) {
      if (keys.has(key)) continue;
      this.#entries.delete(key);
      this.#notifyDeleted(key, kept);
    }
  }

  /** Calls `relisted`: changes of objects that are not remembered may have been missed. */
  relisted(): void {
    for (const handlers of this.#handlers) this.#notify(() => handlers.relisted?.(), '');
  }

  #notifyDeleted(key: string, kept: K): void {
    for (const handlers of this.#handlers) this.#notify(() => handlers.deleted?.(kept, key), key);
  }

  /** An exception of a handler is logged and does not affect other handlers. */
  #notify(call: () => void, key: string): void {
    try {
      call();
    } catch (err) {
      this.#options.logger.error('a handler failed', {
        component: 'informer',
        resource: this.#options.resource,
        key,
        err,
      });
    }
  }
}
