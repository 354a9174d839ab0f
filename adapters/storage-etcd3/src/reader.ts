import {
  checkKey,
  type Entry,
  type Key,
  type KeyRange,
  type ListChunk,
  OrderedRange,
  type ReadOptions,
  type Revision,
  throwIfAborted,
} from '@keelson/core/storage-adapter';
import type { HistoryBound } from './history-bound.ts';
import { ListPages } from './list-pages.ts';
import type { Cluster } from './net/cluster.ts';
import { entryOf, type KeySpace } from './wire/key-space.ts';
import { encodeRange } from './wire/requests.ts';
import { decodeRange } from './wire/responses.ts';

const noValue = new Uint8Array(0);

/** Reads of the current state (linearizable) and of old revisions. */
export class Reader {
  readonly #cluster: Cluster;
  readonly #keys: KeySpace;
  readonly #bound: HistoryBound;
  readonly #pages: ListPages;
  readonly #assertOpen: () => void;

  /** @param assertOpen throws when the store is closed; lists call it before each page */
  constructor(cluster: Cluster, keys: KeySpace, bound: HistoryBound, assertOpen: () => void) {
    this.#cluster = cluster;
    this.#keys = keys;
    this.#bound = bound;
    this.#pages = new ListPages(cluster);
    this.#assertOpen = assertOpen;
  }

  async get(
    key: Key,
    options: ReadOptions & { readonly revision?: Revision } = {},
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }> {
    throwIfAborted(options.signal);
    checkKey(key);
    const { revision: at } = options;
    const request = encodeRange({ key: this.#keys.encode(key), revision: this.#pin(at) });
    const decode = (answer: Buffer) => ({ ...decodeRange(answer), sizeBytes: answer.length });
    const call = { key, signal: options.signal };
    const answer = await this.explained(at, this.#cluster.read('/etcdserverpb.KV/Range', request, decode, call));
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
      yield { entries: [], revision: await this.#readRevision(at, options.signal), more: false };
      return;
    }
    const { end } = bounds;
    const { keysOnly = false, signal } = options;
    let left = options.limit || Number.POSITIVE_INFINITY;
    for (let key = bounds.start, more = true; more; ) {
      this.#assertOpen();
      throwIfAborted(signal);
      const request = { key, end, keysOnly, revision: this.#pin(at) };
      const page = await this.explained(at, this.#pages.read(request, left, { signal }));
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
    throwIfAborted(options.signal);
    const bounds = this.#boundsOf(range);
    const { revision: at, signal } = options;
    if (bounds === undefined) return { count: 0, exact: true, revision: await this.#readRevision(at, signal) };
    const request = encodeRange({ key: bounds.start, end: bounds.end, countOnly: true, revision: this.#pin(at) });
    const answer = await this.explained(
      at,
      this.#cluster.read('/etcdserverpb.KV/Range', request, decodeRange, { signal }),
    );
    return { count: answer.count, exact: true, revision: at ?? answer.header.revision };
  }

  /** Returns the revision to read at etcd; 0 for the current state. */
  #pin(revision: Revision | undefined): Revision {
    return revision === undefined ? 0 : this.#bound.pin(revision);
  }

  /** Adds the compacted or the current revision to errors of a read at a revision. */
  async explained<T>(revision: Revision | undefined, reading: Promise<T>): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      throw revision === undefined ? error : await this.#bound.explain(error, revision);
    }
  }

  /** Returns the revision of a read whose range is empty. */
  async #readRevision(revision: Revision | undefined, signal: AbortSignal | undefined): Promise<Revision> {
    const current = await this.explained(revision, this.#bound.probe(this.#pin(revision), { signal }));
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
