import type { KubeObject, Logger } from '@keelson/core';
import type { InformerHandlers } from './informer-handlers.ts';

/** What is known of one object. */
interface Entry<K> {
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly kept: K;
}

export interface ObjectMirrorOptions<T extends KubeObject, K> {
  readonly keep: (object: T) => K;
  /** Absent: everything is remembered. */
  readonly remember?: (kept: K) => boolean;
  readonly logger: Logger;
  /** For log lines. */
  readonly resource: string;
}

/** The objects an informer knows, and those who want to hear of changes to them. */
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

  /** Tells the handlers of everything known and, from then on, of changes. */
  addHandlers(handlers: InformerHandlers<K>, { first = false }: { readonly first?: boolean } = {}): () => void {
    for (const [key, { kept }] of this.#entries) this.#tell(() => handlers.added?.(kept, key), key);
    this.#handlers = first ? [handlers, ...this.#handlers] : [...this.#handlers, handlers];
    return () => {
      this.#handlers = this.#handlers.filter((other) => other !== handlers);
    };
  }

  /** An object as it is now. The same version of it as before is no change. */
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
      for (const handlers of this.#handlers) this.#tell(() => handlers.updated?.(kept, before.kept, key), key);
      return;
    }
    this.#entries.set(key, { uid, resourceVersion, kept });
    for (const handlers of this.#handlers) {
      this.#tell(
        () => (before === undefined ? handlers.added?.(kept, key) : handlers.updated?.(kept, before.kept, key)),
        key,
      );
    }
  }

  /**
   * An object that is gone, with its last state. Handlers are not told of one they never knew, unless some are not
   * remembered.
   */
  remove(key: string, last: T): void {
    if (this.#entries.delete(key) || this.#options.remember !== undefined)
      this.#tellDeleted(key, this.#options.keep(last));
  }

  /** Everything else is gone; the last state known stands in for the last state. */
  keepOnly(keys: ReadonlySet<string>): void {
    for (const [key, { kept }] of this.#entries) {
      if (keys.has(key)) continue;
      this.#entries.delete(key);
      this.#tellDeleted(key, kept);
    }
  }

  /** Changes may have been missed; those of remembered objects have been told. */
  relisted(): void {
    for (const handlers of this.#handlers) this.#tell(() => handlers.relisted?.(), '');
  }

  #tellDeleted(key: string, kept: K): void {
    for (const handlers of this.#handlers) this.#tell(() => handlers.deleted?.(kept, key), key);
  }

  /** A handler that fails keeps neither the others nor the informer from going on. */
  #tell(call: () => void, key: string): void {
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
