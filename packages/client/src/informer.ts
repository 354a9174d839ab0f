import type { Clock, KubeObject, Logger, ResourceClient } from '@keelson/core';
import { Backoff } from './backoff.ts';
import { isGone, isOlderVersion, isTooLargeResourceVersion, needsNewList } from './informer-errors.ts';
import type { InformerHandlers } from './informer-handlers.ts';
import { listAll } from './list-all.ts';
import { ObjectMirror } from './object-mirror.ts';

export type { InformerHandlers };

export interface InformerOptions<T extends KubeObject, K> {
  readonly client: ResourceClient<T>;
  /** What is kept of each object; give a small projection when only a part is needed. */
  readonly keep: (object: T) => K;
  readonly handlers?: InformerHandlers<K>;
  /**
   * Which objects take a place in memory; default: all. The others are nowhere to be found, and handlers hear of one only when it is deleted,
   * or no longer remembered (`updated`).
   */
  readonly remember?: (kept: K) => boolean;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects per page of a list. Default 500. */
  readonly pageSize?: number;
  /** The first list may come from a cache that lags behind, which spares the store. Default false. */
  readonly firstListFromCache?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Key of an object in an informer: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyOf(object: KubeObject): string {
  const { namespace, name = '' } = object.metadata ?? {};
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** How the next list is asked for. */
type NextList = 'first' | 'notOlder' | 'latest' | 'none';

/** A watch that ends sooner than this without an event is a failure, not an answer. */
const shortWatchMs = 1_000;
/** After a watch that lasted this long, failures are counted anew. */
const healthyWatchMs = 10_000;
const leastWatchSeconds = 300;

/**
 * A copy of a collection that follows the server: lists once, then watches from the list's resourceVersion, resumes after an end of
 * the stream without missing or repeating a change, and lists anew only when the server's history is gone (410), or when the server
 * has gone back behind what was seen (it was restored). After a new list the handlers see the difference to what was known
 * before, so they never need to know that it happened. Rules: clients.md 3.2.
 */
export class Informer<T extends KubeObject, K = T> {
  readonly #options: InformerOptions<T, K>;
  readonly #mirror: ObjectMirror<T, K>;
  readonly #stop = new AbortController();
  readonly #settled: Promise<void>;
  #settle: () => void = () => {};
  #synced = false;
  #running: Promise<void> | undefined;
  #resourceVersion = '';
  #next: NextList = 'first';
  /** The server may have been replaced by one with another past. */
  #suspect = false;

  constructor(options: InformerOptions<T, K>) {
    this.#options = options;
    const { keep, remember, logger, handlers, client } = options;
    this.#mirror = new ObjectMirror({ keep, ...(remember && { remember }), logger, resource: client.resourceName.resource });
    if (handlers !== undefined) this.#mirror.addHandlers(handlers);
    this.#settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Begins to follow; resolves when the first list is complete, or the informer was stopped before. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#settled;
  }

  /** Ends following; no handler is called afterwards. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#settle();
    await this.#running;
  }

  /** True once the first list is complete. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Waits for the first list: true when it is complete, false when the informer was stopped or the signal aborted before. */
  async waitForSync(signal?: AbortSignal): Promise<boolean> {
    if (signal === undefined) await this.#settled;
    else if (!signal.aborted) {
      let abort = () => {};
      const aborted = new Promise<void>((resolve) => {
        abort = resolve;
        signal.addEventListener('abort', abort, { once: true });
      });
      await Promise.race([this.#settled, aborted]);
      signal.removeEventListener('abort', abort);
    }
    return this.#synced;
  }

  /**
   * Adds handlers, also while running: they are told at once of every object that is known. The returned function takes them away.
   * With `first` they are called before all others, so that what they maintain is up to date for those.
   */
  addHandlers(handlers: InformerHandlers<K>, options: { readonly first?: boolean } = {}): () => void {
    return this.#mirror.addHandlers(handlers, options);
  }

  /** The resourceVersion up to which this copy is complete. */
  get resourceVersion(): string {
    return this.#resourceVersion;
  }

  get(key: string): K | undefined {
    return this.#mirror.get(key);
  }

  values(): IterableIterator<K> {
    return this.#mirror.values();
  }

  get size(): number {
    return this.#mirror.size;
  }

  async #run(): Promise<void> {
    const { clock, logger, client } = this.#options;
    const backoff = new Backoff(clock);
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (this.#next !== 'none') await this.#list();
        else if (this.#suspect) await this.#probe();
        this.#suspect = false;
        if (signal.aborted) return;
        if (await this.#watch(() => backoff.reset())) continue;
        logger.debug('watch ended at once', { component: 'informer', resource: client.resourceName.resource });
      } catch (err) {
        if (signal.aborted) return;
        if (this.#plan(err)) continue;
        logger.debug('informer interrupted', { component: 'informer', resource: client.resourceName.resource, err });
      }
      await backoff.wait(signal);
    }
  }

  /** Decides from a failure how to go on; true when it can be tried at once. */
  #plan(error: unknown): boolean {
    const relisting = this.#next === 'notOlder';
    if (isTooLargeResourceVersion(error)) {
      this.#next = 'latest';
      return relisting;
    }
    if (isGone(error)) {
      this.#next = this.#next === 'none' ? 'notOlder' : 'latest';
      return relisting;
    }
    if (this.#next === 'none' && needsNewList(error)) this.#next = 'notOlder';
    this.#suspect = true;
    return false;
  }

  /**
   * After trouble with a watch: has this server got as far as we have? One that lost its data would let a watch from the future wait
   * until it gets there, and tell nothing until then. Fails with the 504 of api-conventions 4.4, which leads to a new list.
   */
  async #probe(): Promise<void> {
    const { client } = this.#options;
    const resourceVersion = this.#resourceVersion;
    const { signal } = this.#stop;
    await client.list({ ...this.#selection(), limit: 1, resourceVersion, resourceVersionMatch: 'NotOlderThan', signal });
  }

  async #list(): Promise<void> {
    const { client, pageSize = 500, firstListFromCache = false } = this.#options;
    const { signal } = this.#stop;
    const selection = { ...this.#selection(), signal };
    // A limit beside a resourceVersion would ask for exactly that version, which is what is gone.
    const first =
      this.#next === 'notOlder' && this.#resourceVersion !== ''
        ? { resourceVersion: this.#resourceVersion }
        : { limit: pageSize, ...(this.#next === 'first' && firstListFromCache ? { resourceVersion: '0' } : {}) };
    const listed = await listAll({ client, selection, first, pageSize }, (object) => {
      const key = keyOf(object);
      if (!signal.aborted) this.#mirror.put(key, object);
      return key;
    });
    if (signal.aborted) return;
    this.#mirror.keepOnly(listed.keys);
    if (this.#synced) this.#mirror.relisted();
    this.#resourceVersion = listed.resourceVersion;
    this.#next = 'none';
    this.#synced = true;
    this.#settle();
  }

  /** Follows changes until the stream ends; false when it ended too soon to have been a real watch. */
  async #watch(alive: () => void): Promise<boolean> {
    const { client, clock } = this.#options;
    const { signal } = this.#stop;
    const began = clock.monotonic();
    let events = 0;
    const stream = client.watch({
      ...this.#selection(),
      resourceVersion: this.#resourceVersion,
      allowWatchBookmarks: true,
      // Random, so that the watches of many clients do not all come back at once.
      timeoutSeconds: leastWatchSeconds + Math.floor(Math.random() * leastWatchSeconds),
      signal,
    });
    const lasted = () => clock.monotonic() - began;
    try {
      for await (const event of stream) {
        if (signal.aborted) return true;
        events += 1;
        alive();
        const { resourceVersion } = event.object.metadata ?? {};
        if (resourceVersion !== undefined && isOlderVersion(resourceVersion, this.#resourceVersion)) {
          this.#next = 'latest';
          throw new Error('the server went back behind what was seen');
        }
        if (event.type === 'ADDED' || event.type === 'MODIFIED') this.#mirror.put(keyOf(event.object), event.object);
        else if (event.type === 'DELETED') this.#mirror.remove(keyOf(event.object), event.object);
        this.#resourceVersion = resourceVersion ?? this.#resourceVersion;
      }
    } finally {
      if (lasted() >= healthyWatchMs) alive();
    }
    return events > 0 || lasted() >= shortWatchMs;
  }

  #selection() {
    const { labelSelector, fieldSelector } = this.#options;
    return {
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
  }
}
