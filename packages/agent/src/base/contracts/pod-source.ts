import type { Pod } from '@keelson/kinds';

/**
 * Where pods come from. What the submit server took carries the source annotation `http`, as options know no other word
 * for it.
 */
export type PodSourceName = 'file' | 'http' | 'submit' | 'api';

/**
 * Takes the complete set of pods of one source, each time it may have changed; an empty set says that the source has
 * been read and has none. Pods are defaulted, valid, named, and have a UID; they belong to the receiver.
 */
export type PodSink = (pods: readonly Pod[]) => void;

/**
 * Takes what changed since a complete set was delivered: pods as they are now, and the UIDs of those that are gone. For
 * sources that hear of each change, so that one of them costs the same however many pods there are.
 */
export type PodChangesSink = (pods: readonly Pod[], gone: readonly string[]) => void;

/** One origin of pods. Constructed with its sink. */
export interface PodSource {
  readonly name: PodSourceName;
  /**
   * Begins to read. Resolves when reading is under way, not when something was found; troubles of the origin are logged
   * and tried again.
   */
  start(): Promise<void>;
  /** After this resolves the sink is not called any more. Idempotent. */
  stop(): Promise<void>;
}

/**
 * What happened to a pod of one source. Pods are told apart by their UID.
 *
 * - `add`: not known before
 * - `update`: anything but the status differs; with a `deletionTimestamp` it is a request to end the pod
 * - `reconcile`: the status alone differs from what the source said last (somebody else wrote it)
 * - `remove`: the source has it no more
 */
export interface PodChange {
  readonly op: 'add' | 'update' | 'remove' | 'reconcile';
  readonly pod: Pod;
  readonly source: PodSourceName;
}

/**
 * Hears of each set that a source delivered: what it changed, which is nothing for a set that said nothing new. The
 * first set of a source is always told.
 */
export type PodConfigListener = (source: PodSourceName, changes: readonly PodChange[]) => void;

/** The pods that all sources together want on this node. */
export interface PodConfigReader {
  /**
   * Calls back from now on, synchronously and in the order of deliveries; what is known already is not repeated.
   * Returns how to leave.
   */
  subscribe(listener: PodConfigListener): () => void;
  /** Desired pods of all sources, mirror pods among those of the API. */
  pods(): readonly Pod[];
  /**
   * True when each source that was configured has delivered once. Until then nothing may be removed, cleaned up or
   * killed.
   */
  seenAllSources(): boolean;
}
