import { isStorageError, StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Clock } from '../runtime/clock.ts';
import { HistoryWatch, type HistoryWatchOptions } from '../storage/history-watch.ts';
import type { ObjectPredicate, WatchEvent } from '../storage/resource-storage.ts';
import { type BookmarkStamp, bookmarkEvent } from '../storage/resource-watch.ts';
import type { ObjectSource, StorageMemory } from '../storage/storage-memory.ts';
import { type Key, prefixRange, type Revision, type Store } from '../storage/store.ts';
import { throwIfAborted } from '../storage/store-helpers.ts';
import { StoredObject } from '../storage/stored-object.ts';
import type { CacheMetrics } from './cached-storage.ts';
import { CachedWatch, type WatchHost } from './cached-watch.ts';
import { InitialState } from './event-source.ts';
import { EventWindow, KindEvent, PastStates, type WindowLimits, type WindowTotal } from './event-window.ts';
import type { IndexSnapshot } from './ordered-index.ts';
import { OrderedIndex } from './ordered-index.ts';
import type { WatchView } from './watch-scopes.ts';
import { WatchScopes } from './watch-scopes.ts';
import { WindowExtension } from './window-extension.ts';

/** What a cache of one kind requires of the feed that fills it. */
export interface KindFeed {
  /** All changes up to this revision have been delivered to the caches. */
  readonly frontier: Revision;
  /** Starts the delivery of every change of the cache's prefix. */
  attach(cache: KindCache): void;
  /** Stops the delivery until the cache attaches itself again. */
  detach(cache: KindCache): void;
}

export interface KindCacheOptions {
  readonly prefix: string;
  readonly stamp: BookmarkStamp;
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: WindowLimits;
  /** Shared by the caches of all kinds. */
  readonly windowTotal: WindowTotal;
  readonly metrics: CacheMetrics;
  readonly memory: StorageMemory;
}

/** A change as the feed delivers it. */
export interface Incoming {
  readonly revision: Revision;
  readonly key: Key;
  /** Undefined when the key was deleted. */
  readonly object: StoredObject | undefined;
}

/** Number of evicted events after which the views drop the events that have left the window. */
const trimEvery = 256;

/** Content of a loaded cache. It is replaced as a whole when history was lost. */
interface Loaded {
  readonly index: OrderedIndex;
  readonly window: EventWindow;
  readonly past: PastStates;
  readonly scopes: WatchScopes;
  readonly extension: WindowExtension;
  /** Revision of the list that loaded the cache, which contains all older changes. */
  readonly floor: Revision;
}

/**
 * The objects of one kind at the frontier of the feed, their latest events, and the watches on them.
 *
 *     unloaded --load()--> loading --list read, changes since then applied--> loaded
 *        ^___________________|_________________reset()________________________|
 */
export class KindCache implements WatchHost {
  readonly prefix: string;
  readonly #options: KindCacheOptions;
  /** Source of objects from a list of the store, whose values may be shared with the store. */
  readonly #source: ObjectSource;
  /** Source of objects from the history of the store, whose values are not shared with the store. */
  readonly #historySource: ObjectSource;
  readonly #feed: KindFeed;
  #loaded: Loaded | undefined;
  #loading: Promise<void> | undefined;
  /** Changes that arrive while the list is being read. */
  #early: Incoming[] = [];
  #generation = 0;
  readonly #watches = new Set<CachedWatch>();
  #untrimmed = 0;
  #bookmark: WatchEvent | undefined;

  constructor(options: KindCacheOptions, feed: KindFeed) {
    this.prefix = options.prefix;
    this.#options = options;
    const { memory } = options;
    this.#source = { sharedValues: options.store.capabilities.sharedValues === true, memory };
    this.#historySource = { sharedValues: false, memory };
    this.#feed = feed;
  }

  /** Undefined until {@link load} has succeeded, and again after history was lost. */
  get index(): OrderedIndex | undefined {
    return this.#loaded?.index;
  }

  get window(): EventWindow {
    return this.#required().window;
  }

  get revision(): Revision {
    return Math.max(this.#loaded?.floor ?? 0, this.#feed.frontier);
  }

  /** Reads the objects of the kind, unless they are loaded. Concurrent callers share one read. */
  load(): Promise<void> | undefined {
    if (this.#loaded !== undefined) return undefined;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
      this.#early = [];
      if (this.#loaded === undefined) this.#feed.detach(this);
    });
    return this.#loading;
  }

  /** The state at a revision that the cache has reached; undefined when it is no longer available. */
  stateAt(revision: Revision): IndexSnapshot | undefined {
    return this.#loaded?.past.at(revision);
  }

  /** Keeps the state of a chunked list for its next pages. */
  remember(revision: Revision, state: IndexSnapshot): void {
    this.#loaded?.past.remember(revision, state);
  }

  /** Applies a change from the feed and adds the views that have a new event to `touched`. */
  receive(change: Incoming, touched: WatchView[]): void {
    const loaded = this.#loaded;
    if (loaded === undefined) this.#early.push(change);
    else if (change.revision > loaded.floor) this.#apply(loaded, change, touched);
  }

  /**
   * Discards the content and ends every watch with the error; the next read loads the cache again. A watch whose
   * position is not compacted has lost nothing: it ends with `Closed`, so that its client resumes at its position.
   */
  reset(error: StorageError): void {
    const bound = isStorageError(error, 'Compacted')
      ? (error.revision ?? Number.POSITIVE_INFINITY)
      : Number.POSITIVE_INFINITY;
    const resumable = new Set([...this.#watches].filter((watch) => watch.revision >= bound));
    const rebuilt = new StorageError(
      StorageErrorCode.Closed,
      'the cache is reloaded; the watch can be resumed at its position',
      {
        cause: error,
      },
    );
    this.#generation++;
    this.#loaded?.window.discard();
    this.#loaded = undefined;
    this.#bookmark = undefined;
    for (const watch of [...this.#watches]) watch.fail(resumable.has(watch) ? rebuilt : error);
  }

  watchState(prefix: string, predicate: ObjectPredicate, endBookmark: boolean, signal?: AbortSignal): CachedWatch {
    const { index } = this.#required();
    const watch = this.#open(prefix, predicate, signal);
    const state = index.snapshot();
    const { from, to } = ranksOf(state, prefix, predicate);
    const bookmark = endBookmark
      ? bookmarkEvent(this.#options.stamp, this.revision, { memory: this.#options.memory, initialEventsEnd: true })
      : undefined;
    watch.begin(new InitialState(state, from, to, predicate, this.revision, bookmark));
    return watch;
  }

  async watchChanges(
    prefix: string,
    predicate: ObjectPredicate,
    after: Revision,
    signal?: AbortSignal,
  ): Promise<CachedWatch> {
    await this.#required().extension.reach(after);
    throwIfAborted(signal);
    const watch = this.#open(prefix, predicate, signal);
    try {
      await watch.beginAfter(after);
    } catch (error) {
      watch.close();
      throw error;
    }
    return watch;
  }

  bookmark(): WatchEvent {
    const { revision } = this;
    if (this.#bookmark?.object.revision !== revision) {
      this.#bookmark = bookmarkEvent(this.#options.stamp, revision, { memory: this.#options.memory });
    }
    return this.#bookmark as WatchEvent;
  }

  openHistory(
    options: Pick<HistoryWatchOptions, 'prefix' | 'predicate' | 'after' | 'onProgress'>,
  ): Promise<HistoryWatch> {
    this.#options.metrics.leftWindow();
    return HistoryWatch.open(this.#options.store, {
      ...options,
      stamp: this.#options.stamp,
      source: this.#historySource,
    });
  }

  forget(watch: CachedWatch, prefix: string, view: WatchView): void {
    if (!this.#watches.delete(watch)) return;
    this.#loaded?.scopes.release(prefix, view);
    this.#options.metrics.watchers(-1);
  }

  #open(prefix: string, predicate: ObjectPredicate, signal: AbortSignal | undefined): CachedWatch {
    const view = this.#required().scopes.view(prefix, predicate);
    const watch = new CachedWatch(this, prefix, view, signal);
    this.#watches.add(watch);
    this.#options.metrics.watchers(1);
    return watch;
  }

  #required(): Loaded {
    if (this.#loaded !== undefined) return this.#loaded;
    throw new StorageError(StorageErrorCode.Unavailable, `the cache of ${this.prefix} is being rebuilt`);
  }

  /**
   * Changes are collected from before the list begins. The list is linearizable, so it is at least as new as the feed
   * was then, and no change is missing between the list and the collected changes.
   */
  async #load(): Promise<void> {
    const { store, clock, limits } = this.#options;
    for (;;) {
      const generation = this.#generation;
      this.#early = [];
      this.#feed.attach(this);
      const index = OrderedIndex.live(this.#options.memory);
      let floor = 0;
      try {
        for await (const chunk of store.list(prefixRange(this.prefix))) {
          floor = chunk.revision;
          index.load(chunk.entries.map((entry) => StoredObject.fromEntry(entry, this.#source)));
        }
      } catch (error) {
        // Compaction has overtaken the list. No caller requires that revision, so a new list is read.
        if (isStorageError(error, 'Compacted')) continue;
        throw error;
      }
      if (generation !== this.#generation) continue;
      const window = new EventWindow(floor, limits, this.#options.windowTotal);
      const past = new PastStates(index, window, clock);
      const scopes = new WatchScopes(this.prefix);
      const extension = new WindowExtension(store, this.#historySource, this.prefix, window, clock);
      this.#loaded = { index, window, past, scopes, extension, floor };
      for (const change of this.#early) this.receive(change, []);
      this.#options.metrics.objects(index.size);
      return;
    }
  }

  #apply(loaded: Loaded, change: Incoming, touched: WatchView[]): void {
    const { index, window, past, scopes } = loaded;
    past.beforeEvent();
    const prev = change.object === undefined ? index.delete(change.key) : index.set(change.object);
    if (prev === undefined && change.object === undefined) return;
    const event = new KindEvent(change.revision, change.key, change.object, prev, this.#options.clock.monotonic());
    this.#untrimmed += window.push(event);
    if (this.#untrimmed >= trimEvery) {
      this.#untrimmed = 0;
      scopes.trim(window.startRevision);
    }
    try {
      scopes.deliver(event, touched);
    } catch (error) {
      this.#failWatches(error);
    }
    this.#options.metrics.applied(index.size);
  }

  /** An event that cannot be delivered (a corrupt object) ends the watches, because none may miss it silently. */
  #failWatches(error: unknown): void {
    for (const watch of [...this.#watches]) watch.fail(error);
  }
}

/** The ranks of the objects that have the prefix and, if the predicate requires a key, that key. */
export function ranksOf(
  state: IndexSnapshot,
  prefix: string,
  { key }: Pick<ObjectPredicate, 'key'> = {},
): { from: number; to: number } {
  if (key !== undefined) {
    const from = state.rank(key);
    return { from, to: key.startsWith(prefix) ? state.rankAfter(key) : from };
  }
  return { from: state.rank(prefix), to: state.rank(endOf(prefix)) };
}

function endOf(prefix: string): string {
  return prefix.endsWith('/') ? `${prefix.slice(0, -1)}0` : prefixRange(prefix).end;
}
