import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Clock } from '../runtime/clock.ts';
import { type DirectListRequest, listDirectly } from './direct-list.ts';
import { createStored, guaranteedUpdate } from './guaranteed-update.ts';
import { HistoryWatch, type HistoryWatchOptions } from './history-watch.ts';
import type {
  ReadPoint,
  ResourceStorage,
  ResourceWatch,
  StorageListOptions,
  StorageWatchOptions,
  StoredList,
  UpdateDecision,
  UpdateOutcome,
  WriteOptions,
} from './resource-storage.ts';
import type { BookmarkStamp } from './resource-watch.ts';
import type { ObjectSource, StorageMemory } from './storage-memory.ts';
import type { Key, Revision, Store } from './store.ts';
import { awaitRevision, pinnedPoint, throwIfAborted } from './store-helpers.ts';
import { StoredObject } from './stored-object.ts';

/** The objects of one kind read straight from a store. Every read is a read of the store; nothing is kept. */
export class DirectStorage implements ResourceStorage {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #stamp: BookmarkStamp;
  readonly #source: ObjectSource;
  readonly #watches = new Set<HistoryWatch>();

  constructor(store: Store, clock: Clock, stamp: BookmarkStamp, memory: StorageMemory) {
    this.#store = store;
    this.#clock = clock;
    this.#stamp = stamp;
    this.#source = { sharedValues: false, memory };
  }

  create(key: Key, json: Buffer, options: WriteOptions = {}): Promise<StoredObject> {
    return createStored({ store: this.#store, source: this.#source, key, signal: options.signal }, json, options.ttlMs);
  }

  async get(
    key: Key,
    at: ReadPoint,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<StoredObject | undefined> {
    const revision = await this.#reached(at, options.signal);
    const { entry } = await this.#store.get(key, { ...options, ...(revision === undefined ? {} : { revision }) });
    return entry === undefined ? undefined : StoredObject.fromEntry(entry, this.#source).readable();
  }

  async list(prefix: string, options: StorageListOptions): Promise<StoredList> {
    const { resume, signal } = options;
    const revision = await this.#reached(pinnedPoint(options), signal);
    const request: DirectListRequest = {
      source: this.#source,
      prefix,
      predicate: options.predicate,
      limit: options.limit ?? 0,
      revision,
      after: resume?.after,
      signal,
    };
    return listDirectly(this.#store, request);
  }

  async watch(prefix: string, options: StorageWatchOptions): Promise<ResourceWatch> {
    const { from, predicate, signal } = options;
    const onEnd = (watch: HistoryWatch) => this.#watches.delete(watch);
    const common = { prefix, predicate, signal, stamp: this.#stamp, source: this.#source, onEnd };
    if (from.start === 'changesAfter') return this.#open({ ...common, after: from.revision });
    if (from.notOlderThan !== undefined) await awaitRevision(this.#store, this.#clock, from.notOlderThan, signal);
    const state = await listDirectly(this.#store, {
      source: this.#source,
      prefix,
      predicate,
      limit: 0,
      revision: undefined,
      after: undefined,
      signal,
    });
    return this.#open({
      ...common,
      after: state.revision,
      initial: [...state.objects()],
      endBookmark: from.endBookmark === true,
    });
  }

  update(
    key: Key,
    decide: (current: StoredObject | undefined) => UpdateDecision | Promise<UpdateDecision>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<UpdateOutcome> {
    return guaranteedUpdate({ store: this.#store, source: this.#source, key, decide, signal: options.signal });
  }

  currentRevision(): Promise<Revision> {
    return this.#store.currentRevision();
  }

  /** Ends every watch. */
  stop(): void {
    for (const watch of this.#watches) watch.fail(new StorageError(StorageErrorCode.Closed, 'the storage was stopped'));
  }

  async #open(options: HistoryWatchOptions): Promise<ResourceWatch> {
    const watch = await HistoryWatch.open(this.#store, options);
    if (!watch.closed) this.#watches.add(watch);
    return watch;
  }

  /**
   * The revision at which a read is performed; undefined: the latest state, which also satisfies all other
   * consistencies.
   */
  async #reached(at: ReadPoint, signal: AbortSignal | undefined): Promise<Revision | undefined> {
    throwIfAborted(signal);
    if (at.at === 'latest' || at.at === 'any') return undefined;
    await awaitRevision(this.#store, this.#clock, at.revision, signal);
    return at.at === 'exact' ? at.revision : undefined;
  }
}
