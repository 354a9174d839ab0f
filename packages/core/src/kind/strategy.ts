import type { FieldError } from '../meta/field-error.ts';
import type { NameRule } from '../meta/names.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { KubeObject } from '../meta/types.ts';

export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground';

export type { NameRule };

/** What a hook may look at besides the objects. */
export interface StrategyContext {
  readonly request: RequestContext;
  readonly now: Date;
  /** Sends a `Warning` header. */
  readonly warn: (text: string) => void;
}

/**
 * The behaviour of one kind. Every hook is optional; the registry calls them in the order of api-conventions 4.6.
 * `default` and `prepare*` mutate the object given (a private copy); `validate*` never mutate.
 */
// biome-ignore lint/suspicious/noExplicitAny: strategies of every kind share this contract
export interface Strategy<T extends KubeObject = any> {
  /** Default `dns1123Subdomain`. */
  readonly nameRule?: NameRule;
  /** When metadata.generation rises: `none` = not kept, `spec` = on any change outside metadata and status. Default `none`. */
  readonly generation?: 'none' | 'spec' | 'spec-and-annotations';
  /** PUT of a missing name creates it (201). Default false. */
  readonly allowCreateOnUpdate?: boolean;
  /** PUT without resourceVersion overwrites. Default true. */
  readonly allowUnconditionalUpdate?: boolean;
  /** What DELETE does when nobody says; `none` = never adds finalizers. Default `Background`. */
  readonly defaultPropagation?: PropagationPolicy | 'none';
  /** A delete that removes at once answers with the object rather than a Status. Default false. */
  readonly deleteReturnsObject?: boolean;
  /** True when the kind's status is its own subresource: main writes keep the stored status, status writes keep the rest. */
  readonly statusSubresource?: boolean;
  /** With `statusSubresource`: a create keeps the status in the body, e.g. a node that registers itself. Default false: cleared. */
  readonly keepsStatusOnCreate?: boolean;

  /** Defaults that depend on other fields; static defaults sit on the schema. Runs after decoding, on create, update and patch. */
  readonly default?: (object: T) => void;
  /** Server-set fields of a new object, e.g. the initial status. The registry has already cleared status if it is a subresource. */
  readonly prepareForCreate?: (object: T, context: StrategyContext) => void;
  /** Fields of a main write that must keep their stored value; the registry has already restored status. */
  readonly prepareForUpdate?: (object: T, old: T, context: StrategyContext) => void;
  /** Fields of a status write that must keep their stored value; the registry has already restored everything but status and metadata. */
  readonly prepareForStatusUpdate?: (object: T, old: T, context: StrategyContext) => void;
  readonly validate?: (object: T) => FieldError[];
  readonly validateUpdate?: (object: T, old: T) => FieldError[];
  readonly validateStatusUpdate?: (object: T, old: T) => FieldError[];
  /** Remarks for the client that are not errors. */
  readonly warnings?: (object: T) => string[];

  /**
   * Seconds to wait before the object goes away, or undefined when it goes at once. `requested` is the client's
   * gracePeriodSeconds, undefined when unset.
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
