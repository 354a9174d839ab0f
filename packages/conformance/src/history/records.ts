/**
 * The records of a history. One record is one JSON line; times are milliseconds of one monotonic clock, revisions are
 * the numbers behind resourceVersion.
 */
export type HistoryRecord =
  | ObjectRecord
  | CallRecord
  | WatchOpened
  | WatchEventSeen
  | BookmarkSeen
  | WatchClosed
  | WatchFinished
  | HistoryReleased
  | Mark;

/**
 * A state of an object as observed by a client. Each different state is written once; other records refer to it by
 * `id`.
 */
export interface ObjectRecord {
  readonly t: 'object';
  readonly id: number;
  readonly object: SeenObject;
}

/** The parts of an object that the checker uses. */
export interface SeenObject {
  /** `kind/namespace/name`. */
  readonly key: string;
  readonly uid: string;
  readonly revision: number;
  readonly created: string;
  /** `metadata.generation`; absent for kinds without a generation. */
  readonly generation?: number;
  readonly labels: Fields;
  /** Fields that clients set (data, spec). */
  readonly values: Fields;
  /** Fields that only the status subresource writes. */
  readonly status: Fields;
  /** Fingerprint of the whole object without its resourceVersion. */
  readonly digest: string;
}

/** Text fields of an object, such as labels. */
export type Fields = Readonly<Record<string, string>>;

/** Changes of a merge patch; null removes a field. */
export type FieldChanges = Readonly<Record<string, string | null>>;

/** One call of one client, from before it was sent until its response was received. */
export interface CallRecord {
  readonly t: 'call';
  readonly id: number;
  readonly client: string;
  readonly server: string;
  readonly start: number;
  readonly end: number;
  readonly op: Operation;
  readonly reply: Reply;
}

export type Operation = WriteOperation | GetOperation | ListOperation;

/**
 * A write. `token` is unique and becomes part of the object: in `values.token`, or in `status.token` of a status write.
 * `expect` is the revision that the call requires.
 */
export type WriteOperation =
  | {
      readonly do: 'create';
      readonly key: string;
      readonly token: string;
      readonly labels: Fields;
      readonly values: Fields;
    }
  | {
      readonly do: 'replace';
      readonly key: string;
      readonly token: string;
      readonly labels: Fields;
      readonly values: Fields;
      readonly expect?: number;
    }
  | {
      readonly do: 'patch';
      readonly key: string;
      readonly token: string;
      readonly labels?: FieldChanges;
      readonly values: FieldChanges;
      readonly expect?: number;
    }
  | {
      readonly do: 'status';
      readonly key: string;
      readonly token: string;
      readonly status: FieldChanges;
      readonly expect?: number;
    }
  | { readonly do: 'delete'; readonly key: string; readonly expect?: number };

export interface GetOperation {
  readonly do: 'get';
  readonly key: string;
  readonly at: ReadAt;
}

export interface ListOperation {
  readonly do: 'list';
  readonly selection: Selection;
  readonly at: ReadAt;
  /** The pages of one list share this id. */
  readonly list: number;
  /** Number of the page in its list, from 0. */
  readonly page: number;
  readonly limit?: number;
}

/** The state that a read requests. */
export type ReadAt =
  | { readonly at: 'latest' }
  | { readonly at: 'any' }
  | { readonly at: 'notOlderThan' | 'exact'; readonly revision: number };

/** The selection of a list or a watch. */
export interface Selection {
  readonly kind: string;
  readonly namespace?: string;
  /** All terms must match. */
  readonly labels?: readonly LabelTerm[];
  readonly name?: string;
  /** Required value of `values[field]`. */
  readonly value?: { readonly field: string; readonly is: string };
}

/** A condition on one label. */
export type LabelTerm =
  | { readonly is: 'in' | 'notIn'; readonly key: string; readonly values: readonly string[] }
  | { readonly is: 'there' | 'absent'; readonly key: string };

/**
 * `refused`: the server refused the write, nothing was written. `unknown`: the write may have taken effect. A
 * successful write contains the resulting object, a successful delete the uid.
 */
export type Reply =
  | {
      readonly is: 'ok';
      readonly object?: number;
      readonly uid?: string;
      readonly revision?: number;
      readonly items?: readonly number[];
      readonly more?: boolean;
    }
  | { readonly is: 'refused'; readonly code: number; readonly reason: string }
  | { readonly is: 'unknown'; readonly why: string };

/** A session of a watch: one connection. The sessions of one informer share `watch`. */
export interface WatchOpened {
  readonly t: 'open';
  readonly session: number;
  readonly watch: string;
  readonly server: string;
  readonly at: number;
  readonly selection: Selection;
  /** `state`: the current objects first (`fresh`: not older than the call), then changes. */
  readonly from: { readonly after: number } | { readonly state: 'fresh' | 'any' };
  /** The session continues at the end of the previous session of the same watch. */
  readonly resumed: boolean;
}

export interface WatchEventSeen {
  readonly t: 'event';
  readonly session: number;
  readonly at: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: number;
}

export interface BookmarkSeen {
  readonly t: 'bookmark';
  readonly session: number;
  readonly at: number;
  readonly revision: number;
  /** The bookmark that ended the initial events. */
  readonly initialEnd?: boolean;
}

/** End of a session; `gone` means that the server reported 410. */
export interface WatchClosed {
  readonly t: 'close';
  readonly session: number;
  readonly at: number;
  readonly why: 'gone' | 'ended' | 'cut' | 'refused';
  readonly detail?: string;
}

/** The watch has had time to observe everything up to `revision`; no change up to it may be missing. */
export interface WatchFinished {
  readonly t: 'finish';
  readonly watch: string;
  readonly at: number;
  readonly revision: number;
}

/** From this time on history before `revision` may be compacted, because compaction was requested. */
export interface HistoryReleased {
  readonly t: 'release';
  readonly at: number;
  readonly revision: number;
}

/** A remark for readers of the history, for example a fault or a restart. */
export interface Mark {
  readonly t: 'mark';
  readonly at: number;
  readonly text: string;
}

export function isWrite(op: Operation): op is WriteOperation {
  return op.do !== 'get' && op.do !== 'list';
}

/** Returns the kind of a key of the form `kind/namespace/name`. */
export function kindOfKey(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
