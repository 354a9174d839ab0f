import type { ApiClient, KindDefinition, KubeObject, Stored } from '@keelson/core';
import type { Clock, Logger, Metrics, Tracing } from '@keelson/core/runtime';
import type { ObjectReader, Selection } from './shared-informer.ts';

/** What controllers need from the process that runs them. */
export interface ControllerHost {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Records a span for each run. Default: none. */
  readonly tracing?: Tracing | undefined;
  /** Makes the objects of local copies immutable, so that a controller that modifies one fails. For tests. */
  readonly freeze?: boolean;
}

/**
 * Result of `reconcile`. Undefined: nothing remains to be done until the next change. Otherwise the object is
 * reconciled again after `againAfterMs`, or earlier after a change.
 */
export type ReconcileResult = undefined | { readonly againAfterMs: number };

/** One run of `reconcile`. */
export interface ReconcileRun {
  /** `namespace/name`, or `name` of a cluster-scoped object. */
  readonly key: string;
  /** Writes made by this client are visible in `read` before the same object is reconciled again. */
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborted when the controllers stop. */
  readonly signal: AbortSignal;
  /** The local copy of a kind that the controller has declared. Objects are shared and must not be modified. */
  read<T extends KubeObject>(kind: KindDefinition<T>): ObjectReader<T>;
  /** Records an event about an object. Never fails and never waits. */
  event(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** `void`, because older compilers infer it for functions that return nothing. */
export type Reconcile<T extends KubeObject> = (object: Stored<T>, run: ReconcileRun) => Promise<ReconcileResult | void>;

/** Another kind whose changes lead to runs. */
export interface RelatedKind {
  readonly kind: KindDefinition;
  /** Keys of the objects to reconcile after a change. `before` is undefined for a new or a deleted object. */
  readonly keys: (object: KubeObject, before: KubeObject | undefined, read: ReconcileRun['read']) => readonly string[];
  readonly select?: Selection;
}

/**
 * Declares that changes of objects of `kind` lead to runs for the returned keys; without `keys` the kind is only read.
 *
 * @param select limits the local copy of the kind
 */
export function relatedKind<T extends KubeObject>(
  kind: KindDefinition<T>,
  keys: (object: T, before: T | undefined, read: ReconcileRun['read']) => readonly string[] = () => [],
  select?: Selection<T>,
): RelatedKind {
  return { kind, keys, ...(select === undefined ? {} : { select }) } as unknown as RelatedKind;
}

/** A controller: it is called with each object of `kind` after every change that may concern it. */
export interface ControllerDefinition<T extends KubeObject = KubeObject> {
  /** Appears in logs, metrics and events, for example `replicaset-controller`. */
  readonly name: string;
  /** The source of the events that the controller records. Default: the name of the controller. */
  readonly eventSource?: string;
  readonly kind: KindDefinition<T>;
  /** Limits the local copy of `kind`; other objects are not reconciled. */
  readonly select?: Selection<T>;
  /** Kinds whose objects this controller creates; a change of one leads to a run for its controlling owner. */
  readonly owns?: readonly KindDefinition[];
  /** Other kinds that are read, or whose changes lead to runs. */
  readonly related?: readonly RelatedKind[];
  /**
   * The controller begins when the first object of `kind` exists, so that until then no other kind is copied. Only for
   * controllers that have nothing to do without such objects. Default false.
   */
  readonly needsObjects?: boolean;
  /** Number of objects that are reconciled concurrently; the runs of one object are sequential. Default 1. */
  readonly workers?: number;
  /**
   * Changes the actual state towards the state that the object requests. A failure is logged and the run is repeated
   * with back-off.
   */
  readonly reconcile: Reconcile<T>;
  /**
   * Called after the object was deleted, with its key. Not called when an object with the same name was created in the
   * meantime, and not for objects that were deleted while the controller did not run; use a finalizer for these.
   */
  readonly deleted?: (run: ReconcileRun) => Promise<ReconcileResult>;
}

/** A controller of a kind of any type. */
// biome-ignore lint/suspicious/noExplicitAny: controllers of kinds of every type
export type AnyController = ControllerDefinition<any>;
