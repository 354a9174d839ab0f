/**
 * What a history consists of. One record is one JSON line; times are milliseconds of one monotonic clock, revisions are
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
 * A state of an object as some client saw it. Each different sighting is written once; other records name it by `id`.
 */
export interface ObjectRecord {
  readonly t: 'object';
  readonly id: number;
  readonly object: SeenObject;
}

/** The parts of an object that the checker reasons about. */
export interface SeenObject {
  /** `kind/namespace/name`. */
  readonly key: string;
  readonly uid: string;
  readonly revision: number;
  readonly created: string;
  /** Absent for kinds without one. */
  readonly generation?: number;
  readonly labels: Fields;
  /** What clients wish (data, spec). */
  readonly values: Fields;
  /** What only the status subresource writes. */
  readonly status: Fields;
  /** Fingerprint of the whole object without its resourceVersion. */
  readonly digest: string;
}

export type Fields = Readonly<Record<string, string>>;

/** Changes of a merge patch: null removes. */
export type FieldChanges = Readonly<Record<string, string | null>>;

/** One call of one client, from before it was sent until its answer was there. */
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
 * `expect` is the revision that the call made a condition.
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
  /** 0 for the first page. */
  readonly page: number;
  readonly limit?: number;
}

export type ReadAt =
  | { readonly at: 'latest' }
  | { readonly at: 'any' }
  | { readonly at: 'notOlderThan' | 'exact'; readonly revision: number };

/** Which objects a list or a watch asked for. */
export interface Selection {
  readonly kind: string;
  readonly namespace?: string;
  /** All must hold. */
  readonly labels?: readonly LabelTerm[];
  readonly name?: string;
  /** `values[field]` must be this. */
  readonly value?: { readonly field: string; readonly is: string };
}

export type LabelTerm =
  | { readonly is: 'in' | 'notIn'; readonly key: string; readonly values: readonly string[] }
  | { readonly is: 'there' | 'absent'; readonly key: string };

/**
 * `refused`: the server said no, nothing happened. `unknown`: it may have happened. A successful write names the
 * resulting object, a successful delete the uid.
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
  /** `state`: the present objects first (`fresh`: not older than the call), then changes. */
  readonly from: { readonly after: number } | { readonly state: 'fresh' | 'any' };
  /** It goes on where the session before it of the same watch ended. */
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
  /** It ended the initial events. */
  readonly initialEnd?: boolean;
}

/** End of a session; `gone` = the server said 410. */
export interface WatchClosed {
  readonly t: 'close';
  readonly session: number;
  readonly at: number;
  readonly why: 'gone' | 'ended' | 'cut' | 'refused';
  readonly detail?: string;
}

/** The watch was given time to see everything up to `revision`; nothing of it may be missing now. */
export interface WatchFinished {
  readonly t: 'finish';
  readonly watch: string;
  readonly at: number;
  readonly revision: number;
}

/** From this moment on the store may have let go of everything before `revision`: somebody told it to. */
export interface HistoryReleased {
  readonly t: 'release';
  readonly at: number;
  readonly revision: number;
}

/** Something worth knowing when reading the history: a fault, a restart. */
export interface Mark {
  readonly t: 'mark';
  readonly at: number;
  readonly text: string;
}

export function isWrite(op: Operation): op is WriteOperation {
  return op.do !== 'get' && op.do !== 'list';
}

/** `kind` of a key of the form `kind/namespace/name`. */
export function kindOfKey(key: string): string {
  return key.slice(0, key.indexOf('/'));
}
