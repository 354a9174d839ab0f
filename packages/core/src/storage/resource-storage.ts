import type { KubeObject } from '../meta/types.ts';
import type { Key, Revision } from './store.ts';
import type { StoredObject } from './stored-object.ts';

/** Reads of what a cache holds at the moment of the call. They fail as {@link ResourceStorage.get} does. */
export interface CachedReads {
  get(key: Key): StoredObject | undefined;
  /** All objects below a prefix, in the order of their keys. */
  list(prefix: string): readonly StoredObject[];
}

/**
 * The storage of the objects of one kind. It is implemented directly over a `Store` and by the watch cache; both
 * implementations behave equally. Keys are storage keys. Every method fails with `StorageError` only, or with the error
 * of a callback.
 */
export interface ResourceStorage {
  /** Fails with `AlreadyExists`. `json` is the object without metadata.resourceVersion, in canonical form. */
  create(key: Key, json: Buffer, options?: WriteOptions): Promise<StoredObject>;

  /**
   * Undefined when the key does not exist. `any` may be stale; `notOlderThan` waits up to three seconds, then
   * `FutureRevision`.
   */
  get(key: Key, at: ReadPoint, options?: { readonly signal?: AbortSignal }): Promise<StoredObject | undefined>;

  list(prefix: string, options: StorageListOptions): Promise<StoredList>;

  /** Reads of `any` state without waiting; undefined while they have to wait. Absent: every read waits. */
  readonly cached?: CachedReads | undefined;

  watch(prefix: string, options: StorageWatchOptions): Promise<ResourceWatch>;

  /**
   * Changes an object (GuaranteedUpdate). `decide` receives the current object, or undefined when there is none, and
   * returns its new state. It is called again after a concurrent write. The first call may receive an older, cached
   * state: an error of `decide` is final only when that state was current, otherwise `decide` is called again.
   */
  update(
    key: Key,
    decide: (current: StoredObject | undefined) => UpdateDecision | Promise<UpdateDecision>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<UpdateOutcome>;

  /** Linearizable. */
  currentRevision(): Promise<Revision>;
}

export interface WriteOptions {
  readonly ttlMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * What `decide` wants. `write` of bytes equal to the current ones becomes `unchanged`: nothing is written, the revision
 * stays, no event is sent. `keep` requests the same explicitly.
 */
export type UpdateDecision =
  | { readonly do: 'write'; readonly json: Buffer; readonly ttlMs?: number }
  | {
      readonly do: 'delete';
      /**
       * Last state to show in the DELETED event and the answer. When it differs from the stored one it is written
       * first, as a change of its own, because history is what every process and every later watcher learns it from.
       */
      readonly json?: Buffer;
    }
  | { readonly do: 'keep' };

export interface UpdateOutcome {
  readonly outcome: 'created' | 'updated' | 'unchanged' | 'deleted';
  /** The state after the update; for `deleted` the last state with the revision of the deletion. */
  readonly object: StoredObject;
}

/**
 * Which state a read requests: see docs/reference/api-rules.md#state-of-a-get and
 * docs/reference/api-rules.md#state-of-a-list.
 */
export type ReadPoint =
  | { readonly at: 'latest' }
  | { readonly at: 'any' }
  | { readonly at: 'notOlderThan'; readonly revision: Revision }
  | { readonly at: 'exact'; readonly revision: Revision };

/** Decides which objects a list or watch shows. */
export interface ObjectPredicate {
  /** True when every object matches; lists and watches then do not parse objects. */
  readonly everything: boolean;
  /** Identity of the predicate: equal ids match the same objects, so their answers can be shared. */
  readonly id: string;
  /** Set when only one key can match. */
  readonly key?: Key;
  /** Set when only objects with one value of an attribute can match; watches are indexed by it. */
  readonly pin?: Pin;
  matches(object: StoredObject): boolean;
}

/** A value that every object has which a predicate matches, e.g. the node that a pod is on. */
export interface Pin {
  /** Identity of the attribute: pins with equal attributes read the same value. */
  readonly attribute: string;
  readonly value: string;
  /** The attribute's value; undefined when the object has none. */
  readonly read: (object: StoredObject) => string | undefined;
}

export interface StorageListOptions {
  readonly at: ReadPoint;
  readonly predicate: ObjectPredicate;
  /** Greatest number of matching objects on the page; absent or 0 = all. */
  readonly limit?: number;
  /** Position at which the list continues; `at` is ignored then. */
  readonly resume?: ListPosition;
  readonly signal?: AbortSignal;
}

/** The position at which a chunked list continues. */
export interface ListPosition {
  /** The snapshot of all pages; `latest` when the original one is gone and the client accepted that. */
  readonly revision: Revision | 'latest';
  /** Last key seen; the next page starts after it. */
  readonly after: Key;
}

/** A part of a list that other lists contain too. A consumer may keep what it derives from the bytes. */
export interface SharedPart {
  /** Identifies the bytes: they are the same wherever this object is the same. */
  readonly content: object;
  /** The bytes in pieces. Each is created when it is read, so that other work can run before the next one. */
  pieces(): Iterable<Buffer>;
}

/** How neighbouring objects are written in a list. `id` names the form uniquely in the process. */
export interface PartForm {
  readonly id: string;
  /** `isFirst`: the list begins with these objects, so that no separator precedes them. */
  pieces(objects: readonly StoredObject[], isFirst: boolean): Iterable<Buffer>;
}

/** A page of a list: one snapshot, in key order. */
export interface StoredList {
  readonly revision: Revision;
  /** Present when more keys follow; none of them need match the predicate. */
  readonly next?: ListPosition;
  /** Number of objects after this page; only without a predicate and when `next` is present. */
  readonly remaining?: number;
  readonly count: number;
  objects(): Iterable<StoredObject>;
  /** True when all chunks of the stored form may be taken at once: their bytes are there already, or few. */
  readonly ready: boolean;
  /**
   * The page's objects encoded and joined with `separator` in pieces of any size. The caller may reuse buffers of
   * `pieces`; all others are shared and must not be changed. No object is parsed when the representation is the
   * stored one.
   */
  chunks(representation: Representation, separator: ',', pieces?: PieceSource): Iterable<Buffer>;
  /** The page's objects in a form, in shared parts where that is possible; absent when the list has none. */
  parts?(form: PartForm): Iterable<Buffer | SharedPart>;
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';

/** One change as one watcher sees it (selectors applied). Shared by all watchers that see it the same way. */
export interface WatchEvent {
  readonly type: WatchEventType;
  /**
   * For BOOKMARK an empty object with only a resourceVersion (and, at the end of the initial events, an annotation).
   */
  readonly object: StoredObject;
  /** True on the bookmark that ends the initial events. */
  readonly initialEventsEnd?: boolean;
  /** The frame of this event; made once per representation id, shared by all watchers. */
  encoded(representation: EventRepresentation): Buffer;
}

export interface StorageWatchOptions {
  readonly predicate: ObjectPredicate;
  /**
   * `changesAfter`: only what comes after that revision. `state`: ADDED for every current object first (`fresh`: the
   * state is at least as new as the call, or as `notOlderThan`), then changes.
   */
  readonly from:
    | { readonly start: 'changesAfter'; readonly revision: Revision }
    | {
        readonly start: 'state';
        readonly fresh: boolean;
        readonly notOlderThan?: Revision;
        readonly endBookmark?: boolean;
      };
  readonly bookmarks?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * A position in the history of a kind. Pull-based: `read` returns what is available; when it is empty, `onReadable` is
 * called once as soon as there is more. Nothing is queued per watcher, so that a slow reader delays only itself.
 *
 * Ends in exactly one way: `close` by the owner, or an error (`Compacted`: history is gone; `SlowConsumer`,
 * `EpochChanged`, `Unavailable`, `Closed`) that `read` throws, once everything before it has been read.
 */
export interface ResourceWatch extends AsyncIterable<WatchEvent> {
  /**
   * Up to `maxEvents` events in revision order; empty = nothing now. Watches that read the same events with the same
   * `maxEvents` may be given the very same array. Throws the StorageError that ended the watch.
   */
  read(maxEvents: number): readonly WatchEvent[];
  /**
   * Calls back once, in a later turn or at once from the writer's turn, when `read` would return something or throw.
   */
  onReadable(callback: () => void): void;
  /** Everything up to this revision has been read; 0 until the initial state has been. */
  readonly revision: Revision;
  /** Makes a bookmark of the current position available as soon as everything before it has been read. */
  requestBookmark(): void;
  close(): void;
}

/** A form of an object on the wire, without any envelope around it. `id` names it uniquely in the process. */
export interface Representation {
  readonly id: string;
  /** True when the result is `object.json` itself, so that nothing is created or kept. */
  readonly stored?: boolean;
  encode(object: StoredObject): Buffer;
}

/** A form of an event on the wire, framing included. */
export interface EventRepresentation {
  readonly id: string;
  encode(type: WatchEventType, object: StoredObject): Buffer;
}

/** How stored bytes of a kind relate to objects. */
export interface ObjectCodec {
  /** Canonical JSON without metadata.resourceVersion, metadata first: `{"kind":K,"apiVersion":V,"metadata":{`... */
  encode(object: KubeObject): Buffer;
  decode(json: Buffer): KubeObject;
}

/** Size of a buffer in which a list is assembled. */
export const pieceBytes = 64 * 1024;

/**
 * Source of the buffers in which lists are assembled. The consumer of a list may reuse such a buffer when its piece has
 * been sent: a buffer is part of one piece only, and the list does not read it again.
 */
export interface PieceSource {
  /** A buffer of {@link pieceBytes} with undefined content. */
  take(): Buffer;
}

/** Buffers that are used once. */
export const freshPieces: PieceSource = { take: () => Buffer.allocUnsafeSlow(pieceBytes) };
