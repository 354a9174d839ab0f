import type { FieldError } from '../meta/field-error.ts';
import type { NameRule } from '../meta/names.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';

/** Whether finalizers that are not standard need a domain in front (built-in kinds), or may be any qualified name. */
export type FinalizerRule = 'domain' | 'qualifiedName';

/** What happens to the dependents of a deleted object. */
export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground';

export type { NameRule };

/** What a hook receives besides the objects. */
export interface StrategyContext {
  readonly request: RequestContext;
  readonly now: Date;
  /** Sends a `Warning` header. */
  readonly warn: (text: string) => void;
}

/**
 * The behaviour of one kind. Every hook is optional and synchronous.
 *
 * Call order (the complete order of a write is in docs/reference/api-rules.md#order-of-a-write):
 *
 * - create: `default`, mutating admission, `prepareForCreate`, `validate`, `validateCreate`, `warnings`, validating
 *   admission, `ttlMs`.
 * - main update and patch: `default`, mutating admission, `prepareForUpdate`, `validate`, `validateUpdate`, `warnings`,
 *   validating admission.
 * - status update and patch: `default`, mutating admission, `prepareForStatusUpdate`, `validateStatusUpdate`,
 *   validating admission.
 * - write of a subresource that changes its parent as `raw`: mutating admission, `validate`, validating admission.
 * - every update ends with `heldBack` when the object is being deleted and has no finalizers, and with
 *   `ttlMs` when it is stored.
 * - delete: `undeletable`, admission, `gracePeriod`, `beginDeletion` when a grace period starts, `heldBack`,
 *   `beginDeletion` when the deletion starts otherwise.
 *
 * Rules for hooks:
 *
 * - Objects are private copies. `default`, `prepare*`, `beginDeletion` and `export` change the given object; all other
 *   hooks must not, and no hook changes `old`.
 * - A hook runs again when a concurrent write makes a new attempt necessary. It depends on its arguments only.
 * - An object that does not fit its schema is rejected without a call of `default`, `prepare*` or `validate*`.
 * - `validate*` return all errors; the client receives them in one 422. A thrown error that is no
 *   `StatusError` becomes a 500.
 * - `default` is idempotent, because it also runs on objects that were read from the store and patched.
 */
// biome-ignore lint/suspicious/noExplicitAny: strategies of every kind share this contract
export interface Strategy<T extends KubeObject = any> {
  /** Default `dns1123Subdomain`. */
  readonly nameRule?: NameRule;
  /** Default `domain`. */
  readonly finalizerRule?: FinalizerRule;
  /**
   * When metadata.generation rises: `none` = not kept, `spec` = on any change outside metadata and status, `content` =
   * on any change outside metadata. Default: `spec` for kinds with a field `spec`, otherwise `none`.
   */
  readonly generation?: 'none' | 'spec' | 'spec-and-annotations' | 'content';
  /** PUT of a missing name creates it (201). Default false. */
  readonly allowCreateOnUpdate?: boolean;
  /** PUT without resourceVersion overwrites. Default true. */
  readonly allowUnconditionalUpdate?: boolean;
  /** Policy of a DELETE that names none; `none` = never adds finalizers. Default `Background`. */
  readonly defaultPropagation?: PropagationPolicy | 'none';
  /** Text of the `Warning` header of a DELETE that names no policy. Default: none. */
  readonly propagationWarning?: string;
  /** A delete that removes at once returns the object instead of a Status. Default false. */
  readonly deleteReturnsObject?: boolean;
  /**
   * Whether main writes keep the stored status, and status writes the rest. It follows from `subresources`: true
   * exactly when `status` is among them. A declaration that states the opposite is rejected.
   */
  readonly statusSubresource?: boolean;
  /**
   * With `statusSubresource`: a create keeps the status in the body, e.g. a node that registers itself. Default false:
   * cleared.
   */
  readonly keepsStatusOnCreate?: boolean;
  /**
   * Status writes keep the stored metadata except managedFields, so that permission for them alone gives none over
   * finalizers and owners. Default false: they may change labels, annotations, finalizers and owners.
   */
  readonly statusKeepsMetadata?: boolean;

  /** Sets defaults that depend on other fields; constant defaults belong to the schema. */
  readonly default?: (object: T) => void;
  /**
   * Sets fields of a new object that the server owns, e.g. the initial status. The metadata has been set before, and
   * the status has been cleared unless `keepsStatusOnCreate`.
   */
  readonly prepareForCreate?: (object: T, context: StrategyContext) => void;
  /** Restores fields that a main write may not change. The status has been restored before. */
  readonly prepareForUpdate?: (object: T, old: T, context: StrategyContext) => void;
  /** Restores fields that a status write may not change. All but status and metadata have been restored before. */
  readonly prepareForStatusUpdate?: (object: T, old: T, context: StrategyContext) => void;
  /** Errors of an object, whether it is new or changed. Not called for status writes. */
  readonly validate?: (object: T) => FieldError[];
  /** Errors of a new object, besides those of `validate`. */
  readonly validateCreate?: (object: T) => FieldError[];
  /** Errors of a change, besides those of `validate`. */
  readonly validateUpdate?: (object: T, old: T) => FieldError[];
  /** Errors of a status write. */
  readonly validateStatusUpdate?: (object: T, old: T) => FieldError[];
  /**
   * Texts for `Warning` headers. Called for valid objects only, on create, main update and patch; `old` is absent on
   * create.
   */
  readonly warnings?: (object: T, old?: T) => string[];

  /**
   * Seconds between the DELETE and the removal, or undefined when the object is removed at once. `requested` is the
   * gracePeriodSeconds of the client, undefined when unset.
   */
  readonly gracePeriod?: (object: T, requested: number | undefined) => number | undefined;
  /** Called when deletion begins (deletionTimestamp has just been set), e.g. to set a phase. */
  readonly beginDeletion?: (object: T, context: StrategyContext) => void;
  /** True while something besides metadata.finalizers keeps a deleting object, e.g. a namespace's spec.finalizers. */
  readonly heldBack?: (object: T) => boolean;
  /** Why an object of this name must never be deleted, or undefined. */
  readonly undeletable?: (name: string) => string | undefined;
  /** Clears fields a user cannot set, for `?export=true`; runs after the generic clearing. */
  readonly export?: (object: T, exact: boolean) => void;
  /** Milliseconds after the last write at which the object expires. */
  readonly ttlMs?: (object: T) => number | undefined;
}
