import { type Clock, isStatusError, type KubeObject, type Logger, type ResourceClient, StatusReason } from '@keelson/core';
import { Backoff } from './backoff.ts';

/** Called in the order of changes. `kept` is what `keep` made of an object. */
export interface InformerHandlers<K> {
  readonly added?: (kept: K) => void;
  readonly updated?: (kept: K, before: K) => void;
  readonly deleted?: (kept: K) => void;
}

export interface InformerOptions<T extends KubeObject, K> {
  readonly client: ResourceClient<T>;
  /** What is kept of each object; give a small projection when only a part is needed. */
  readonly keep: (object: T) => K;
  readonly handlers?: InformerHandlers<K>;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly pageSize?: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Key of an object in an informer: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyOf(object: KubeObject): string {
  const { namespace, name = '' } = object.metadata ?? {};
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/**
 * A copy of a collection that follows the server: lists once, then watches from the list's resourceVersion, resumes after an end of
 * the stream without missing or repeating a change, and lists anew only when the server's history is gone (410). After a new list
 * the handlers see the difference to what was known before, so they never need to know that it happened.
 */
export class Informer<T extends KubeObject, K = T> {
  readonly #options: InformerOptions<T, K>;
  readonly #kept = new Map<string, K>();
  readonly #stop = new AbortController();
  readonly #synced: Promise<void>;
  #markSynced: () => void = () => {};
  #running: Promise<void> | undefined;
  #resourceVersion = '';

  constructor(options: InformerOptions<T, K>) {
    this.#options = options;
    this.#synced = new Promise((resolve) => {
      this.#markSynced = resolve;
    });
  }

  /** Begins to follow; resolves when the first list is complete. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#synced;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#markSynced();
    await this.#running;
  }

  /** The resourceVersion up to which this copy is complete. */
  get resourceVersion(): string {
    return this.#resourceVersion;
  }

  get(key: string): K | undefined {
    return this.#kept.get(key);
  }

  values(): IterableIterator<K> {
    return this.#kept.values();
  }

  get size(): number {
    return this.#kept.size;
  }

  async #run(): Promise<void> {
    const { clock, logger, client } = this.#options;
    const backoff = new Backoff(clock);
    const { signal } = this.#stop;
    let listed = false;
    while (!signal.aborted) {
      try {
        if (!listed) await this.#list();
        listed = true;
        this.#markSynced();
        await this.#watch(() => backoff.reset());
      } catch (err) {
        if (signal.aborted) return;
        const gone = isStatusError(err, StatusReason.Expired) || isStatusError(err, StatusReason.Gone);
        if (gone) listed = false;
        logger.debug('informer interrupted', { component: 'informer', resource: client.resourceName.resource, err });
        await backoff.wait(signal);
      }
    }
  }

  async #list(): Promise<void> {
    const { client, keep, handlers, pageSize = 500 } = this.#options;
    const seen = new Set<string>();
    let page = await client.list({ ...this.#selection(), limit: pageSize, signal: this.#stop.signal });
    for (;;) {
      for (const object of page.items) {
        const key = keyOf(object);
        seen.add(key);
        this.#put(key, keep(object));
      }
      const next = page.metadata.continue ?? '';
      if (next === '') break;
      page = await client.list({ ...this.#selection(), limit: pageSize, continue: next, signal: this.#stop.signal });
    }
    for (const [key, kept] of this.#kept) {
      if (seen.has(key)) continue;
      this.#kept.delete(key);
      handlers?.deleted?.(kept);
    }
    this.#resourceVersion = page.metadata.resourceVersion ?? '';
  }

  async #watch(alive: () => void): Promise<void> {
    const { client, keep, handlers } = this.#options;
    const events = client.watch({
      ...this.#selection(),
      resourceVersion: this.#resourceVersion,
      allowWatchBookmarks: true,
      signal: this.#stop.signal,
    });
    for await (const event of events) {
      alive();
      if (event.type === 'ADDED' || event.type === 'MODIFIED') {
        this.#put(keyOf(event.object), keep(event.object));
      } else if (event.type === 'DELETED') {
        const key = keyOf(event.object);
        this.#kept.delete(key);
        handlers?.deleted?.(keep(event.object));
      }
      this.#resourceVersion = event.object.metadata?.resourceVersion ?? this.#resourceVersion;
    }
  }

  #put(key: string, kept: K): void {
    const before = this.#kept.get(key);
    this.#kept.set(key, kept);
    if (before === undefined) this.#options.handlers?.added?.(kept);
    else this.#options.handlers?.updated?.(kept, before);
  }

  #selection() {
    const { labelSelector, fieldSelector } = this.#options;
    return {
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }
}
