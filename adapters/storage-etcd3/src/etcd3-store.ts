import { readFileSync } from 'node:fs';
import {
  type Clock,
  checkKey,
  type Entry,
  isStorageError,
  type Key,
  type KeyRange,
  type ListChunk,
  type Logger,
  type Metrics,
  noMetrics,
  OrderedRange,
  type ReadOptions,
  type Revision,
  StorageError,
  StorageErrorCode,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  silentLogger,
  systemClock,
  throwIfAborted,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core';
import { Compactor, compactTo } from './compactor.ts';
import { EtcdMetrics } from './etcd-metrics.ts';
import { HistoryBound } from './history-bound.ts';
import { entryOf, KeySpace } from './key-space.ts';
import { LatestRevision } from './latest-revision.ts';
import { Leases } from './leases.ts';
import { ListPages } from './list-pages.ts';
import { Cluster } from './net/cluster.ts';
import { Endpoint } from './net/endpoint.ts';
import { StoreLineage } from './store-lineage.ts';
import { Cookie } from './watch/cookie.ts';
import { EtcdWatchStream } from './watch/etcd-watch-stream.ts';
import type { ProgressSource } from './watch/progress-seeker.ts';
import { SharedWatch } from './watch/shared-watch.ts';
import { encodeRange } from './wire/requests.ts';
import { decodeRange } from './wire/responses.ts';
import { Writer } from './writer.ts';

export interface Etcd3StoreOptions {
  /** `http://host:port` or `https://host:port` of the members, all of one cluster. */
  readonly endpoints: readonly string[];
  /** Everything of this store lies under it. Begins and ends with a slash; default `/keelson/`. */
  readonly prefix?: string;
  /** Paths of PEM files, for `https:` endpoints. */
  readonly tls?: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string };
  readonly auth?: { readonly username: string; readonly password: string };
  /** What is kept for readers and watchers of the past: both hold, so whichever keeps more. Default 1000, five minutes. */
  readonly history?: { readonly minChanges?: number; readonly minAgeMs?: number };
  /** `never` when somebody else (a kube-apiserver, etcd itself) compacts this etcd. Default `auto`. */
  readonly compaction?: 'auto' | 'never';
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

export const defaultPrefix = '/keelson/';
const noValue = new Uint8Array(0);

/**
 * A {@link Store} in etcd 3.4 or later, for any number of processes. A revision is etcd's own, so there are gaps where others
 * write to the same etcd. Reads are linearizable; a write is one transaction that compares the key's modRevision.
 */
export class Etcd3Store implements Store {
  readonly capabilities: StoreCapabilities = {
    denseRevisions: false,
    oneChangePerRevision: true,
    multiWriter: true,
    durable: true,
    maxKeyBytes: 1024,
    maxValueBytes: 1024 * 1024,
  };
  readonly #keys: KeySpace;
  readonly #lineage: StoreLineage;
  readonly #cluster: Cluster;
  readonly #bound: HistoryBound;
  readonly #writer: Writer;
  readonly #pages: ListPages;
  readonly #latest: LatestRevision;
  readonly #compactor: Compactor | undefined;
  readonly #watches: { readonly plain: SharedWatch; readonly withPrev: SharedWatch };
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** @throws Error when the options make no sense or a TLS file cannot be read. Connects in `ready`. */
  constructor(options: Etcd3StoreOptions) {
    const { clock = systemClock, history = {}, prefix = defaultPrefix } = options;
    if (!/^\/(?:.*\/)?$/u.test(prefix) || prefix.includes('\0')) {
      throw new Error(`etcd: a prefix begins and ends with a slash, got ${JSON.stringify(prefix)}`);
    }
    const logger = (options.logger ?? silentLogger).child({ component: 'storage-etcd3' });
    const metrics = new EtcdMetrics(options.metrics ?? noMetrics);
    const keys = new KeySpace(prefix);
    this.#keys = keys;
    this.#lineage = new StoreLineage(keys, logger, (error) => this.#startOver(error));
    const cluster = new Cluster({ endpoints: endpointsOf(options), metrics, lineage: this.#lineage });
    this.#cluster = cluster;
    this.#bound = new HistoryBound(cluster, keys, this.#lineage);
    this.#writer = new Writer(cluster, keys, new Leases(cluster, metrics), clock);
    this.#pages = new ListPages(cluster);
    this.#latest = new LatestRevision(() => this.#bound.probe(0, {}));
    const { minChanges = 1000, minAgeMs = 300_000 } = history;
    if (options.compaction !== 'never') {
      const bound = this.#bound;
      this.#compactor = new Compactor({ cluster, bound, clock, logger, key: compactionKey, minAgeMs, minChanges });
    }
    const cookie = new Cookie(cluster, keys, metrics);
    const progress: ProgressSource = { latest: () => this.#latest.get(), leaveMark: () => cookie.write() };
    const environment = { cluster, keys, lineage: this.#lineage, logger, metrics };
    const shared = {
      environment,
      progress,
      clock,
      bound: () => this.#bound.known,
      begin: () => this.#lineage.createdAt,
      compacted: (at: Revision) => this.#bound.raise(at),
    };
    this.#watches = {
      plain: new SharedWatch({ ...shared, prevKv: false }),
      withPrev: new SharedWatch({ ...shared, prevKv: true }),
    };
  }

  /** @throws StorageError `Unavailable` when no member answers; may be called again. */
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

  async write(op: WriteOp, options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {}): Promise<WriteResult> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    checkKey(op.key);
    const limit = this.capabilities.maxValueBytes;
    if (op.op === 'put' && op.value.byteLength > limit) {
      throw new StorageError(StorageErrorCode.TooLarge, `a value has at most ${limit} bytes, got ${op.value.byteLength}`, {
        key: op.key,
      });
    }
    return this.#writer.write(op, options);
  }

  async get(
    key: Key,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    checkKey(key);
    const { revision: at } = options;
    const request = encodeRange({ key: this.#keys.encode(key), revision: this.#pin(at) });
    const decode = (answer: Buffer) => ({ ...decodeRange(answer), sizeBytes: answer.length });
    const call = { key, signal: options.signal };
    const answer = await this.#past(at, this.#cluster.read('/etcdserverpb.KV/Range', request, decode, call));
    const kv = answer.kvs[0];
    const entry = kv === undefined ? undefined : entryOf(key, kv, answer.sizeBytes);
    return { entry, revision: at ?? answer.header.revision };
  }

  async *list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncGenerator<ListChunk, void, undefined> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    const bounds = this.#boundsOf(range);
    let { revision: at } = options;
    if (bounds === undefined) {
      yield { entries: [], revision: await this.#show(at, options.signal), more: false };
      return;
    }
    const { end } = bounds;
    const { keysOnly = false, signal } = options;
    let left = options.limit || Number.POSITIVE_INFINITY;
    for (let key = bounds.start, more = true; more; ) {
      this.#assertOpen();
      throwIfAborted(signal);
      const request = { key, end, keysOnly, revision: this.#pin(at) };
      const page = await this.#past(at, this.#pages.read(request, left, { signal }));
      at ??= page.header.revision;
      left -= page.kvs.length;
      more = page.more && left > 0;
      const last = page.kvs.at(-1);
      if (last !== undefined) key = this.#keys.after(last.key);
      const entries = page.kvs.map((kv) => {
        const name = this.#keys.decode(kv.key);
        if (!keysOnly) return entryOf(name, kv, page.sizeBytes);
        return { key: name, value: noValue, createRevision: kv.createRevision, modRevision: kv.modRevision };
      });
      yield { entries, revision: at, more: page.more };
    }
  }

  async count(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly count: number; readonly exact: boolean; readonly revision: Revision }> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    const bounds = this.#boundsOf(range);
    const { revision: at, signal } = options;
    if (bounds === undefined) return { count: 0, exact: true, revision: await this.#show(at, signal) };
    const request = encodeRange({ key: bounds.start, end: bounds.end, countOnly: true, revision: this.#pin(at) });
    const answer = await this.#past(at, this.#cluster.read('/etcdserverpb.KV/Range', request, decodeRange, { signal }));
    return { count: answer.count, exact: true, revision: at ?? answer.header.revision };
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
    const current = await this.#past(after, this.#bound.probe(this.#pin(after), { signal })).catch((error: unknown) => {
      // What is to come may be watched.
      if (isStorageError(error, 'FutureRevision') && error.revision !== undefined) return error.revision;
      throw error;
    });
    this.#assertOpen();
    throwIfAborted(signal);
    const shared = prevValue === true ? this.#watches.withPrev : this.#watches.plain;
    return new EtcdWatchStream(shared, ordered, after, current, signal);
  }

  async compact(upTo: Revision): Promise<void> {
    this.#assertOpen();
    if (upTo <= Math.max(this.#bound.known, this.#lineage.createdAt)) return;
    await this.#past(upTo, compactTo({ cluster: this.#cluster, bound: this.#bound }, upTo));
  }

  async compactedRevision(): Promise<Revision> {
    this.#assertOpen();
    return this.#bound.current();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Resolves when the turn of the compactor that has begun is over. @internal */
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

  /** The store was replaced or restored: nothing that is known of it holds. */
  #startOver(error: StorageError): void {
    this.#bound.reset();
    for (const watch of [this.#watches.plain, this.#watches.withPrev]) watch.fail(error);
  }

  /** The revision to ask etcd for; 0 for the present. */
  #pin(revision: Revision | undefined): Revision {
    return revision === undefined ? 0 : this.#bound.pin(revision);
  }

  /** Errors of a read at a revision tell what they are about. */
  async #past<T>(revision: Revision | undefined, reading: Promise<T>): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      throw revision === undefined ? error : await this.#bound.explain(error, revision);
    }
  }

  /** The revision of a read that has nothing to read. */
  async #show(revision: Revision | undefined, signal: AbortSignal | undefined): Promise<Revision> {
    const current = await this.#past(revision, this.#bound.probe(this.#pin(revision), { signal }));
    return revision ?? current;
  }

  /** Undefined when no key can be in the range. */
  #boundsOf(range: KeyRange): { readonly start: Buffer; readonly end: Buffer } | undefined {
    const { start, startExclusive, end } = new OrderedRange(range);
    if (end <= start) return undefined;
    const from = range.start === '' ? this.#keys.first : this.#keys.encode(range.start);
    return { start: startExclusive ? this.#keys.after(from) : from, end: this.#keys.encode(range.end) };
  }
}

/** The same as kube-apiserver's, so that all who use one etcd agree on who compacts it. */
const compactionKey = 'compact_rev_key';

function endpointsOf({ endpoints, tls, auth }: Etcd3StoreOptions): Endpoint[] {
  if (endpoints.length === 0) throw new Error('etcd: needs at least one endpoint');
  const secure = endpoints.filter((url) => url.startsWith('https://')).length;
  if (secure > 0 && secure < endpoints.length) throw new Error('etcd: either all endpoints use TLS or none does');
  if (secure === 0 && tls !== undefined) throw new Error('etcd: TLS files are of use with https endpoints only');
  if (tls?.certFile !== undefined && tls.caFile === undefined) {
    throw new Error('etcd: a client certificate needs the file of the CA that signed the servers, too');
  }
  const credentials = {
    ...(tls?.caFile === undefined ? {} : { ca: readFileSync(tls.caFile) }),
    ...(tls?.certFile === undefined ? {} : { cert: readFileSync(tls.certFile) }),
    ...(tls?.keyFile === undefined ? {} : { key: readFileSync(tls.keyFile) }),
  };
  return endpoints.map((url) => new Endpoint({ url, credentials: secure > 0 ? credentials : undefined, auth }));
}
