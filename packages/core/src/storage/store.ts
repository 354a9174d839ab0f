import type { StorageError } from '../errors/storage-error.ts';

/**
 * The contract between Keelson and a storage backend: bytes under keys, one strictly increasing revision per store,
 * compare-and-set on one key, lists at a revision, an ordered resumable watch, compaction.
 *
 * Call order: `ready` until it resolves, then `identity`, `passOver` when a restored store has to be accepted, then all
 * other methods concurrently and in any order, then `close`. `failed` may resolve at any time after `ready`.
 *
 * Invariants, each proven by the suite in `@keelson/conformance`:
 *
 * 1. Total order: every successful write has a revision greater than all before it; a failed one consumes none. An
 * empty store is at revision >= 1. 2. Visibility order: a read at revision R sees every write <= R and none > R. 3.
 * Durable before visible: nothing is acknowledged, listed or watched that a crash could undo. 4. `write`, `get`,
 * `currentRevision` and un-pinned `list` are strictly serializable. 5. All pages of one pinned list come from exactly
 * that state, in key order, or fail with `Compacted`. 6. History of at least the retention window stays readable and
 * watchable. 7. A watch delivers every change in range with revision > `after`, once, ascending, and nothing else. 8.
 * All changes of one revision arrive in one batch; `frontier` never exceeds what was delivered and never decreases. 9.
 * A new stream with `after = last frontier` continues without loss or repeat, until compaction. 10. `prev` is the value
 * just before the change; when it cannot be supplied the stream fails with `Compacted`. 11. Reads and watches below the
 * compacted revision fail with `Compacted`; at or above they succeed; the bound never falls. 12. After a restore or
 * lossy failover revisions never repeat; the epoch changes. 13. A write whose outcome is not known fails with
 * `OutcomeUnknown` and is never repeated by the adapter. 14. An expired key disappears by an ordinary delete change,
 * not early.
 *
 * Every method fails with `StorageError` only; a call whose signal is aborted before it did anything fails with
 * `Timeout`, a write that was in progress with `OutcomeUnknown`. The store owns values that it was given; the caller
 * must not change values that the store returns.
 */

/** Store-wide logical clock: a positive safe integer; 0 means "none". On the wire: decimal text. */
export type Revision = number;

/** UTF-8 text of 1 to 1024 bytes without U+0000. Ordered by its bytes. */
export type Key = string;

/** Keys in `[start, end)`; with `startExclusive`, in `(start, end)`. */
export interface KeyRange {
  readonly start: Key;
  readonly startExclusive?: boolean;
  readonly end: Key;
}

/** The state of a key from `modRevision` on. */
export interface Entry {
  readonly key: Key;
  readonly value: Uint8Array;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
  /** Epoch milliseconds after which the key is removed. */
  readonly expiresAt?: number;
  /**
   * The stored bytes are damaged, for example because they fail their checksum. The value is empty then, and the
   * revisions serve for deleting the key and for nothing else.
   */
  readonly damaged?: boolean;
  /** Why a damaged record cannot be read, for operators; continues a sentence that begins with its key. */
  readonly damage?: string;
}

/** `expect`: 0 = the key must not exist; otherwise its modRevision must equal this. */
export type WriteOp =
  | {
      readonly op: 'put';
      readonly key: Key;
      readonly value: Uint8Array;
      readonly expect: Revision;
      readonly ttlMs?: number;
    }
  | { readonly op: 'delete'; readonly key: Key; readonly expect: Revision };

/** With `ok: false`, `current` is the entry that did not match the expectation, from a linearizable read. */
export type WriteResult =
  | { readonly ok: true; readonly revision: Revision; readonly createRevision: Revision }
  | { readonly ok: false; readonly current: Entry | undefined; readonly revision: Revision };

/** One piece of a list. `revision` is the same on every chunk of one call. */
export interface ListChunk {
  readonly entries: readonly Entry[];
  readonly revision: Revision;
  /** More keys follow in the range. */
  readonly more: boolean;
}

/** One change of one key, as a watch delivers it. */
export interface Change {
  readonly type: 'create' | 'update' | 'delete';
  readonly revision: Revision;
  readonly key: Key;
  /** The new state; undefined for a delete. */
  readonly entry: Entry | undefined;
  /** The state before; present exactly when `prevValue` was asked for and the change is not a create. */
  readonly prev?: Entry | undefined;
}

/** Every change in range with revision <= `frontier` has now been delivered; an empty batch is progress. */
export interface WatchBatch {
  readonly changes: readonly Change[];
  readonly frontier: Revision;
}

/**
 * Pulled by its consumer, so that a slow consumer retains only its position. Ends by `close`, abort, or a StorageError.
 */
export interface WatchStream extends AsyncIterable<WatchBatch> {
  readonly frontier: Revision;
  /** Resolves once `frontier >= revision`, on an idle store too. The consumer must keep pulling. */
  advanceTo(revision: Revision, options?: { readonly signal?: AbortSignal }): Promise<void>;
  close(): Promise<void>;
}

/** What callers may rely on beyond the invariants, and the limits of the store. */
export interface StoreCapabilities {
  /** Revisions have no gaps. */
  readonly denseRevisions: boolean;
  readonly oneChangePerRevision: boolean;
  /** Several processes may write the same store. */
  readonly multiWriter: boolean;
  /** Survives the end of the process. */
  readonly durable: boolean;
  /**
   * The store keeps values in the memory of this process and passes them on without a copy, so that a reader that
   * retains a value needs no memory of its own. Default: false.
   */
  readonly sharedValues?: boolean;
  readonly maxKeyBytes: number;
  readonly maxValueBytes: number;
}

/** Identifies a store across restarts. */
export interface StoreIdentity {
  /** Made when the store was created, never changes. */
  readonly storeId: string;
  /** Rises when history was lost or rewound. */
  readonly epoch: number;
}

/** Options of every read. */
export interface ReadOptions {
  readonly signal?: AbortSignal;
}

/** The contract of a storage backend; the head of this file states the invariants. */
export interface Store {
  readonly capabilities: StoreCapabilities;
  identity(): Promise<StoreIdentity>;
  write(op: WriteOp, options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number }): Promise<WriteResult>;
  get(
    key: Key,
    options?: ReadOptions & { readonly revision?: Revision },
  ): Promise<{ readonly entry: Entry | undefined; readonly revision: Revision }>;
  /**
   * Chunks of bounded size until the range or `limit` (0 = none) is exhausted; at least one chunk, also for an empty
   * range. With `keysOnly` the values are empty.
   */
  list(
    range: KeyRange,
    options?: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean },
  ): AsyncIterable<ListChunk>;
  count(
    range: KeyRange,
    options?: ReadOptions & { readonly revision?: Revision },
  ): Promise<{ readonly count: number; readonly exact: boolean; readonly revision: Revision }>;
  /** Linearizable. */
  currentRevision(options?: ReadOptions): Promise<Revision>;
  /** `after` may be the current revision or older (until compaction); a future one delivers what comes after it. */
  watch(
    range: KeyRange,
    options: { readonly after: Revision; readonly prevValue?: boolean; readonly signal?: AbortSignal },
  ): Promise<WatchStream>;
  /**
   * Drops history below `upTo`; lower than the current bound is a no-op, above the current revision is refused with
   * `FutureRevision`.
   */
  compact(upTo: Revision): Promise<void>;
  compactedRevision(): Promise<Revision>;
  /**
   * Continues a store that was restored to an older state after clients had observed revisions up to `seen`. The store
   * enters a new epoch, its next revision is above `seen`, and the revisions between are `Compacted`. It must be called
   * before any other use of the store. Absent when the store does not support it. Fails with `Unavailable` and a
   * message for operators when it is not possible now.
   */
  passOver?(seen: Revision): Promise<void>;
  /**
   * Resolves with the reason when the store has stopped for good, for example because another process wrote to it:
   * every call fails from then on, and only a new process can use it. Absent where that cannot happen.
   */
  readonly failed?: Promise<StorageError> | undefined;
  /**
   * Opens the backend; called before anything else. A repeated call does nothing, or retries what failed. Fails with
   * `Corrupt` and a message for operators when the backend is so damaged that it cannot be used. With `readOnly`, for a
   * store that is only checked, an embedded store is neither created nor changed.
   */
  ready(options?: { readonly readOnly?: boolean }): Promise<void>;
  /** Finishes running writes, ends every stream and iterator with `Closed`. Idempotent. */
  close(): Promise<void>;
}

/** The range of all keys that begin with `prefix` (which must not be empty). */
export function prefixRange(prefix: string): KeyRange {
  // The successor of the last code point that has one: UTF-8 order is code point order, and surrogates are not valid
  // text.
  const points = Array.from(prefix, (char) => char.codePointAt(0) ?? 0);
  while (points.at(-1) === 0x10ffff) points.pop();
  const last = points.pop();
  if (last === undefined)
    throw new RangeError('the prefix of a range must not be empty or consist of the last character only');
  return { start: prefix, end: String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1) };
}
