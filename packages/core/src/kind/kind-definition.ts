import type { FieldError } from '../meta/field-error.ts';
import type { GroupVersionKind, KubeObject, Scope } from '../meta/types.ts';
import type { Schema } from './schema.ts';
import type { Strategy } from './strategy.ts';
import type { SubresourceDefinition } from './subresource.ts';
import type { VirtualKind } from './virtual-kind.ts';

/** The names of a kind in URLs and clients. */
export interface KindNames {
  /** Lower-case plural, the path segment. */
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** Groups of kinds, e.g. `all`. */
  readonly categories: readonly string[];
}

/** Column types of the Table API. */
export type ColumnType = 'string' | 'integer' | 'number' | 'boolean' | 'date';

/** What a column receives besides the object. */
export interface ColumnContext {
  readonly now: Date;
}

/** One column of the Table representation. */
export interface Column<T> {
  readonly name: string;
  readonly type: ColumnType;
  /** `name` marks the column that names the object. */
  readonly format?: string;
  readonly description: string;
  /** 0: always shown. Greater values: shown in wide output only. */
  readonly priority: number;
  /** The cell; dates are already humanised. Never throws on objects with absent optional fields. */
  readonly value: (object: T, context: ColumnContext) => string | number | boolean | null;
}

/** Condition shown on a Table row, e.g. a finished pod. */
export interface RowCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** A path that field selectors may use, and its value as text ('' when absent). */
export type SelectableField<T> = readonly [path: string, value: (object: T) => string];

/**
 * A kind that shares the storage of another: its objects are stored as objects of `kind`. Both directions
 * must be lossless together (`from(to(x))` equals `x`), and must not mutate their argument.
 */
export interface StorageConversion<T> {
  readonly kind: KindDefinition;
  readonly toStorage: (object: T) => KubeObject;
  readonly fromStorage: (stored: KubeObject) => T;
  /**
   * True when `fromStorage` changes nothing but `apiVersion` and `kind` for this stored JSON, so that bytes can
   * be re-labelled without being parsed.
   */
  readonly isRelabel: (storedJson: Buffer) => boolean;
  /**
   * Names of selectable fields in the storage version, by their names in this version; only of fields whose names
   * differ.
   */
  readonly selectableFields?: Readonly<Record<string, string>>;
}

/** The operations that a kind can offer. */
export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

/** When a version of a kind was deprecated, and removed, in Kubernetes, as `1.14`, and what to use instead. */
export interface Deprecation {
  readonly since: string;
  readonly removed?: string;
  /** `group/version Kind`. */
  readonly replacement?: string;
}

/** The complete declaration of one kind in one version. Created by `defineKind`; immutable. */
// biome-ignore lint/suspicious/noExplicitAny: a list of kinds holds kinds of every type
export interface KindDefinition<T extends KubeObject = any> extends GroupVersionKind {
  /** `group/version`. */
  readonly apiVersion: string;
  readonly listKind: string;
  readonly scope: Scope;
  readonly names: KindNames;
  /** Message schema of the whole object: apiVersion, kind, metadata and the kind's own fields. */
  readonly schema: Schema<T>;
  /** In alphabetical order, as in discovery documents. */
  readonly verbs: readonly Verb[];
  readonly strategy: Strategy<T>;
  readonly subresources: readonly SubresourceDefinition[];
  /** Empty = the default table (Name, Created At). */
  readonly columns: readonly Column<T>[];
  readonly rowConditions?: (object: T) => RowCondition[];
  /**
   * Values of the fields that field selectors may use, by path. `metadata.name` is always included, and
   * `metadata.namespace` for namespaced kinds.
   */
  readonly selectableFields: ReadonlyMap<string, (object: T) => string>;
  /** Absent: the objects are stored in this version. */
  readonly storage?: StorageConversion<T>;
  /** True when a webhook converts between the versions: the registry cannot convert a proposed object by itself. */
  readonly convertedByWebhook?: boolean;
  /** Present: the objects are not stored. The verbs are `create` only, or `get` and `list`. */
  readonly virtual?: VirtualKind<T>;
  /** Present on versions that clients should leave: the text of the `Warning` header on every answer. */
  readonly deprecationWarning?: string;
  /** True when every message of the schema has field numbers. */
  readonly protobuf: boolean;
  /**
   * True for kinds with a struct schema (built in): strategic merge patch is offered and unknown fields are dropped.
   */
  readonly structural: boolean;
}

/** Result of checking a whole object; empty = valid. */
export type FieldErrors = readonly FieldError[];
