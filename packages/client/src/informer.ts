import { isStatusError, type KubeObject, type ListOptions, type ResourceClient, StatusReason } from '@keelson/core';
import { addAbortListener, type Clock, type Logger, removeAbortListener } from '@keelson/core/runtime';
import { isTooLargeResourceVersion } from './http/answer-error.ts';
import { isConnectionError } from './http/connection-error.ts';
import type { InformerHandlers } from './informer-handlers.ts';
import { ObjectMirror } from './object-mirror.ts';
import { Backoff } from './retry/rate-limits.ts';

export type { InformerHandlers };

/** Options of an {@link Informer}: what it follows, and what it keeps of each object. */
export interface InformerOptions<T extends KubeObject, K> {
  readonly client: ResourceClient<T>;
  /** The part of an object that is kept in memory; a small projection saves memory. */
  readonly keep: (object: T) => K;
  readonly handlers?: InformerHandlers<K>;
  /**
   * Selects the objects that are kept; default: all. Other objects are not returned by reads, and handlers are called
   * for them only when they are deleted, or no longer selected (`updated`).
   */
  readonly remember?: (kept: K) => boolean;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects per page of a list. Default 500. */
  readonly pageSize?: number;
  /** Allow the first list to come from a cache that may be behind, which saves reads of the store. Default false. */
  readonly firstListFromCache?: boolean;
  /** Called after each change of `resourceVersion`, when all handlers have been called. */
  readonly progressed?: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Key of an object in an informer: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyOf(object: KubeObject): string {
  const { namespace, name = '' } = object.metadata ?? {};
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** Parameters of the next list. */
type NextList = 'first' | 'notOlder' | 'latest' | 'none';

/** Minimum duration of a watch without events. A shorter one counts as a failure. */
const shortWatchMs = 1_000;
/** A watch that lasts this long resets the failure count. */
const healthyWatchMs = 10_000;
const leastWatchSeconds = 300;
/** A failure is logged when it has lasted this long, and again after each interval. */
const lastingFailureMs = 1_000;
const reportEveryMs = 60_000;

/**
 * A local copy of a collection. It lists once, then watches from the resourceVersion of the list and resumes after the
 * end of a stream without lost or repeated changes. It lists again only when the history of the server is no longer
 * available (410), or when the server is behind the observed revision because it was restored. After such a list the
 * handlers receive the difference to the previous state.
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
  #failingSince: number | undefined;
  /** Monotonic time before which a lasting failure is not logged again; 0: not logged yet. */
  #nextReport = 0;
  /** True when the server may have been replaced by one with another history. */
  #suspect = false;

  constructor(options: InformerOptions<T, K>) {
    this.#options = options;
    const { keep, remember, logger, handlers, client } = options;
    this.#mirror = new ObjectMirror({
      keep,
      ...(remember && { remember }),
      logger,
      resource: client.resourceName.resource,
    });
    if (handlers !== undefined) this.#mirror.addHandlers(handlers);
    this.#settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Starts the informer; resolves when the first list is complete or the informer is stopped. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#settled;
  }

  /** Stops the informer; no handler is called afterwards. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#settle();
    await this.#running;
  }

  /** True after {@link start} was called. */
  get started(): boolean {
    return this.#running !== undefined;
  }

  /** True when the first list is complete. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Waits for the first list. Resolves with false when the informer is stopped or the signal aborts first. */
  async waitForSync(signal?: AbortSignal): Promise<boolean> {
    if (signal === undefined) await this.#settled;
    else if (!signal.aborted) {
      let abort = () => {};
      const aborted = new Promise<void>((resolve) => {
        abort = resolve;
        addAbortListener(signal, abort);
      });
      await Promise.race([this.#settled, aborted]);
      removeAbortListener(signal, abort);
    }
    return this.#synced;
  }

  /**
   * Adds handlers, also while running: `added` is called immediately for all cached objects. The returned function
   * removes the handlers. Handlers added with `first` are called before all others, so that these can rely on their
   * results.
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
        this.#recovered();
        if (await this.#watch(() => backoff.reset())) continue;
        logger.debug('watch ended immediately', { component: 'informer', resource: client.resourceName.resource });
      } catch (err) {
        if (signal.aborted) return;
        if (this.#plan(err)) continue;
        this.#failed(err);
      }
      await backoff.wait(signal);
    }
  }

  /** Logs failures that last, and repeats this at intervals. Short failures are not logged. */
  #failed(err: unknown): void {
    const { clock, logger, client } = this.#options;
    const now = clock.monotonic();
    this.#failingSince ??= now;
    const seconds = Math.round((now - this.#failingSince) / 1000);
    const fields = { component: 'informer', resource: client.resourceName.resource, seconds, err };
    if (now - this.#failingSince < lastingFailureMs || now < this.#nextReport) {
      logger.debug('informer interrupted', fields);
      return;
    }
    this.#nextReport = now + reportEveryMs;
    logger.warn('a collection cannot be followed', fields);
  }

  #recovered(): void {
    this.#failingSince = undefined;
    if (this.#nextReport === 0) return;
    this.#nextReport = 0;
    const { logger, client } = this.#options;
    logger.info('a collection is followed again', { component: 'informer', resource: client.resourceName.resource });
  }

  /** Chooses the next step after a failure; true when it can be tried immediately. */
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
   * Checks after a failed watch that the server has reached the observed revision. On a server that lost data, a watch
   * from a future revision would stay silent until the server reaches it. Fails with 504 in that case, which leads to a
   * new list: see docs/reference/api-rules.md#future-revisions.
   */
  async #probe(): Promise<void> {
    const { client } = this.#options;
    const resourceVersion = this.#resourceVersion;
    const { signal } = this.#stop;
    await client.list({
      ...this.#selection(),
      limit: 1,
      resourceVersion,
      resourceVersionMatch: 'NotOlderThan',
      signal,
    });
  }

  async #list(): Promise<void> {
    const { client, pageSize = 500, firstListFromCache = false } = this.#options;
    const { signal } = this.#stop;
    const selection = { ...this.#selection(), signal };
    // A limit together with a resourceVersion would require exactly that version, which is not available.
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
    this.#options.progressed?.();
    this.#settle();
  }

  /** Processes changes until the stream ends; false when it ended too soon to count as a successful watch. */
  async #watch(alive: () => void): Promise<boolean> {
    const { client, clock } = this.#options;
    const { signal } = this.#stop;
    const began = clock.monotonic();
    let events = 0;
    const stream = client.watch({
      ...this.#selection(),
      resourceVersion: this.#resourceVersion,
      allowWatchBookmarks: true,
      // Not injected: jitter.
      // Random, so that the watches of many clients do not end at the same time.
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
          throw new Error('the server sent an event that is older than the observed resourceVersion');
        }
        if (event.type === 'ADDED' || event.type === 'MODIFIED') this.#mirror.put(keyOf(event.object), event.object);
        else if (event.type === 'DELETED') this.#mirror.remove(keyOf(event.object), event.object);
        this.#resourceVersion = resourceVersion ?? this.#resourceVersion;
        this.#options.progressed?.();
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

export { isTooLargeResourceVersion };

/** True when the server no longer has the requested history. */
export function isGone(error: unknown): boolean {
  if (!isStatusError(error)) return false;
  return error.reason === StatusReason.Expired || error.reason === StatusReason.Gone || error.code === 410;
}

/**
 * True when repeating a failed watch from the same resourceVersion cannot succeed. Broken connections, busy servers and
 * all 5xx responses can be repeated.
 */
export function needsNewList(error: unknown): boolean {
  if (isConnectionError(error)) return error.code === 'BadAnswer';
  return !isStatusError(error) || (error.code !== 429 && error.code < 500);
}

/**
 * Compares two decimal numbers as text, because 64-bit integers exceed the precision of numbers. False when one is not
 * a number.
 */
export function isOlderVersion(version: string, than: string): boolean {
  if (!/^[1-9]\d*$/.test(version) || !/^[1-9]\d*$/.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}

export interface ListAllOptions<T extends KubeObject> {
  readonly client: ResourceClient<T>;
  /** Options of every page. */
  readonly selection: ListOptions;
  /** Options of the first page only. */
  readonly first: ListOptions;
  readonly pageSize: number;
}

/**
 * Reads a collection page by page. When the revision of the pages is compacted before the last page, the whole
 * collection is read again in one request.
 *
 * @param each called for every object; returns its key
 * @returns the keys of the objects of one revision, and its resourceVersion
 */
export async function listAll<T extends KubeObject>(
  { client, selection, first, pageSize }: ListAllOptions<T>,
  each: (object: T) => string,
): Promise<{ readonly keys: ReadonlySet<string>; readonly resourceVersion: string }> {
  let keys = new Set<string>();
  let page = await client.list({ ...selection, ...first });
  for (;;) {
    for (const object of page.items) keys.add(each(object));
    const token = page.metadata.continue ?? '';
    if (token === '') return { keys, resourceVersion: page.metadata.resourceVersion ?? '' };
    try {
      page = await client.list({ ...selection, limit: pageSize, continue: token });
    } catch (error) {
      if (!isGone(error)) throw error;
      // Objects that were read before may have been deleted since.
      keys = new Set();
      page = await client.list(selection);
    }
  }
}
