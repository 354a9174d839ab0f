import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import {
  addAbortListener,
  type Clock,
  type Logger,
  type Metrics,
  noMetrics,
  removeAbortListener,
  silentLogger,
  systemClock,
} from '@keelson/core/runtime';
import {
  Coalesced,
  checkWrite,
  type Entry,
  type Key,
  type KeyRange,
  type ListChunk,
  OrderedRange,
  type ReadOptions,
  type Revision,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  throwIfAborted,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core/storage-adapter';
import { Compactor, compactTo } from './compactor.ts';
import { HistoryBound } from './history-bound.ts';
import { Leases } from './leases.ts';
import { Cluster } from './net/cluster.ts';
import { type EndpointsOptions, endpointsOf } from './net/endpoints-of.ts';
import { EtcdMetrics } from './net/etcd-metrics.ts';
import { Reader } from './reader.ts';
import { StoreLineage } from './store-lineage.ts';
import { Cookie } from './watch/cookie.ts';
import { EtcdWatchStream } from './watch/etcd-watch-stream.ts';
import type { ProgressSource } from './watch/progress-seeker.ts';
import { SharedWatch } from './watch/shared-watch.ts';
import { KeySpace } from './wire/key-space.ts';
import { Writer } from './writer.ts';

export interface Etcd3StoreOptions extends EndpointsOptions {
  /** Prefix of all keys of this store. Begins and ends with a slash; default `/keelson/`. */
  readonly prefix?: string;
  /**
   * The history that readers and watchers of old revisions can use: at least `minChanges` revisions and at least all
   * changes younger than `minAgeMs`. Default: 1000 revisions and five minutes.
   */
  readonly history?: { readonly minChanges?: number; readonly minAgeMs?: number };
  /** `never` when another program (a kube-apiserver, etcd itself) compacts this etcd. Default `auto`. */
  readonly compaction?: 'auto' | 'never';
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

export const defaultPrefix = '/keelson/';

/**
 * Maximum size of a value. etcd accepts requests of 1.5 MiB by default. The 32 KiB between the two limits are for the
 * key, which a write contains up to four times. An object with 1 MiB of data, which clients may store in a ConfigMap,
 * fits.
 */
const maxValueBytes = 1504 * 1024;

/**
 * A {@link Store} in etcd 3.4 or later, for any number of processes. Revisions are those of etcd, so that they have
 * gaps where other programs write to the same etcd. Reads are linearizable; a write is one transaction that compares
 * the modRevision of the key.
 */
export class Etcd3Store implements Store {
  readonly capabilities: StoreCapabilities = {
    denseRevisions: false,
    oneChangePerRevision: true,
    multiWriter: true,
    durable: true,
    maxKeyBytes: 1024,
    maxValueBytes,
  };
  readonly #clock: Clock;
  readonly #lineage: StoreLineage;
  readonly #cluster: Cluster;
  readonly #bound: HistoryBound;
  readonly #writer: Writer;
  readonly #reader: Reader;
  readonly #latest: Coalesced<Revision>;
  readonly #compactor: Compactor | undefined;
  readonly #watches: { readonly plain: SharedWatch; readonly withPrev: SharedWatch };
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /**
   * Connects in `ready`.
   * @throws Error when the options are invalid or a TLS file cannot be read
   */
  constructor(options: Etcd3StoreOptions) {
    const { clock = systemClock, history = {}, prefix = defaultPrefix } = options;
    if (!/^\/(?:.*\/)?$/u.test(prefix) || prefix.includes('\0')) {
      throw new Error(`etcd: a prefix must begin and end with a slash, not ${JSON.stringify(prefix)}`);
    }
    const logger = (options.logger ?? silentLogger).child({ component: 'storage-etcd3' });
    const metrics = new EtcdMetrics(options.metrics ?? noMetrics, clock);
    const keys = new KeySpace(prefix);
    this.#clock = clock;
    const events = {
      changed: (error: StorageError) => this.#startOver(error),
      compact: (upTo: Revision) =>
        compactTo({ cluster: this.#cluster, bound: this.#bound }, upTo, { uninspected: true }),
    };
    this.#lineage = new StoreLineage(keys, logger, events, clock);
    const endpoints = endpointsOf(options, (ask) => this.#lineage.inspect(ask));
    const cluster = new Cluster({ endpoints, metrics, lineage: this.#lineage });
    this.#cluster = cluster;
    this.#bound = new HistoryBound(cluster, keys, this.#lineage, clock);
    this.#writer = new Writer(cluster, keys, new Leases(cluster, metrics, clock), clock, this.#lineage);
    this.#reader = new Reader(cluster, keys, this.#bound, () => this.#assertOpen());
    this.#latest = new Coalesced(() => this.#bound.probe(0, {}));
    const { minChanges = 1000, minAgeMs = 300_000 } = history;
    if (options.compaction !== 'never') {
      const bound = this.#bound;
      this.#compactor = new Compactor({ cluster, bound, clock, logger, key: compactionKey, minAgeMs, minChanges });
    }
    const cookie = new Cookie(cluster, keys, metrics, clock);
    const progress: ProgressSource = { latest: () => this.#latest.get(), writeMark: () => cookie.write() };
    const environment = { cluster, keys, lineage: this.#lineage, logger, metrics, clock };
    const shared = {
      environment,
      progress,
      bound: () => this.#bound.cached,
      begin: () => this.#lineage.createdAt,
      compacted: (at: Revision) => this.#bound.raise(at),
    };
    this.#watches = {
      plain: new SharedWatch({ ...shared, prevKv: false }),
      withPrev: new SharedWatch({ ...shared, prevKv: true }),
    };
  }

  /**
   * Resolves when the store is open. May be called again after a failure.
   * @throws StorageError `Unavailable` when no member answers
   */
  ready(): Promise<void> {
    this.#assertOpen();
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async identity(): Promise<StoreIdentity> {
    this.#assertOpen();
    return this.#lineage.identity();
  }

  async write(
    op: WriteOp,
    options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
  ): Promise<WriteResult> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    checkWrite(op, this.capabilities);
    return this.#writer.write(op, options);
  }

  async get(
    key: Key,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }> {
    this.#assertOpen();
    return this.#reader.get(key, options);
  }

  list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncIterable<ListChunk> {
    return this.#reader.list(range, options);
  }

  async count(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly count: number; readonly exact: boolean; readonly revision: Revision }> {
    this.#assertOpen();
    return this.#reader.count(range, options);
  }

  async currentRevision(options: ReadOptions = {}): Promise<Revision> {
    this.#assertOpen();
    return this.#latest.get(options.signal);
  }

  async watch(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ): Promise<WatchStream> {
    this.#assertOpen();
    const { after, prevValue, signal } = options;
    throwIfAborted(signal);
    const ordered = new OrderedRange(range);
    const current = await this.#reader
      .explained(after, this.#bound.probe(this.#bound.pin(after), { signal }))
      .catch((error: unknown) => {
        // A watch may begin at a future revision.
        if (isStorageError(error, 'FutureRevision') && error.revision !== undefined) return error.revision;
        throw error;
      });
    this.#assertOpen();
    throwIfAborted(signal);
    const shared = prevValue === true ? this.#watches.withPrev : this.#watches.plain;
    const stream = new EtcdWatchStream(shared, ordered, after, current, signal);
    await atMost(this.#clock, establishMs, shared.established, signal);
    this.#assertOpen();
    throwIfAborted(signal);
    return stream;
  }

  async compact(upTo: Revision): Promise<void> {
    this.#assertOpen();
    if (upTo <= Math.max(this.#bound.cached, this.#lineage.createdAt)) return;
    await this.#reader.explained(upTo, compactTo({ cluster: this.#cluster, bound: this.#bound }, upTo));
  }

  async compactedRevision(): Promise<Revision> {
    this.#assertOpen();
    return this.#bound.current();
  }

  async passOver(seen: Revision): Promise<void> {
    this.#assertOpen();
    await this.#lineage.passOver(seen);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Resolves when no attempt of the compactor is running. @internal */
  async settled(): Promise<void> {
    await this.#compactor?.settled();
  }

  async #open(): Promise<void> {
    await this.#lineage.open(this.#cluster);
    this.#compactor?.start();
  }

  async #close(): Promise<void> {
    const closed = new StorageError(StorageErrorCode.Closed, 'the store was closed while it was watched');
    for (const watch of [this.#watches.plain, this.#watches.withPrev]) watch.fail(closed);
    this.#cluster.stopReads();
    await this.#compactor?.stop();
    await this.#writer.finished();
    this.#cluster.close();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new StorageError(StorageErrorCode.Closed, 'the store is closed');
  }

  /** The store was replaced or restored: cached state is void and all watches end. */
  #startOver(error: StorageError): void {
    this.#bound.reset();
    for (const watch of [this.#watches.plain, this.#watches.withPrev]) watch.fail(error);
  }
}

/**
 * How long opening a watch waits for the confirmation of etcd. A watch without confirmation is returned nevertheless:
 * it behaves like a watch whose connection broke, and is confirmed later.
 */
const establishMs = 2000;

function atMost(clock: Clock, ms: number, promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      cancel();
      removeAbortListener(signal, over);
      resolve();
    };
    const cancel = clock.after(ms, over);
    addAbortListener(signal, over);
    promise.then(over, over);
  });
}

/** The key that kube-apiserver uses, so that all servers on one etcd elect one compactor. */
const compactionKey = 'compact_rev_key';
