import type { Pod } from '@keelson/kinds';

/**
 * The origin of a pod. Pods of the submit server carry the source annotation `http`, because the options have no other
 * name for it.
 */
export type PodSourceName = 'file' | 'http' | 'submit' | 'api';

/**
 * Receives the complete set of pods of one source each time it may have changed. An empty set means that the source was
 * read and has no pods. Pods are defaulted, valid and named, and have a UID; the receiver owns them.
 */
export type PodSink = (pods: readonly Pod[]) => void;

/**
 * Receives the changes since the last complete set: changed pods, and the UIDs of removed ones. For sources that are
 * notified of every change, so that the cost of a change does not grow with the number of pods.
 */
export type PodChangesSink = (pods: readonly Pod[], gone: readonly string[]) => void;

/** A source of pods. It is constructed with its sink. */
export interface PodSource {
  readonly name: PodSourceName;
  /**
   * Starts reading. Resolves when reading has started, which may be before a pod was found. Errors of the origin are
   * logged and retried.
   */
  start(): Promise<void>;
  /** After this resolves the sink is not called again. Idempotent. */
  stop(): Promise<void>;
}

/**
 * A change of a pod of one source. The UID identifies the pod.
 *
 * - `add`: the pod is new
 * - `update`: a field other than the status has changed; with a `deletionTimestamp` it is a request to end the pod
 * - `reconcile`: only the status differs from the last delivery, because another client wrote it
 * - `remove`: the source no longer has the pod
 */
export interface PodChange {
  readonly op: 'add' | 'update' | 'remove' | 'reconcile';
  readonly pod: Pod;
  readonly source: PodSourceName;
}

/**
 * Receives the changes of each delivery of a source. The first delivery of a source is always reported; a later
 * delivery without changes has an empty list.
 */
export type PodConfigListener = (source: PodSourceName, changes: readonly PodChange[]) => void;

/** The pods that the sources together assign to this node. */
export interface PodConfigReader {
  /**
   * Calls the listener for every later delivery, synchronously and in order. Earlier deliveries are not repeated.
   * Returns a function that ends the subscription.
   */
  subscribe(listener: PodConfigListener): () => void;
  /** Desired pods of all sources, including the mirror pods of the API source. */
  pods(): readonly Pod[];
  /** True when every configured source has delivered once. Until then no pod and no file may be removed. */
  seenAllSources(): boolean;
}
