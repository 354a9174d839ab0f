import type { KubeObject } from '../meta/types.ts';

/**
 * Allocates what is recorded outside the objects of a kind: values of which no two objects may have the same, such as
 * the addresses of services, and shares of a quota.
 */
export interface ObjectAllocator {
  /**
   * Called before each attempt to store an object, after admission and validation. Sets the allocated fields of
   * `object`. `old` is the stored object, undefined for a new one. A dry run allocates nothing and sets values that are
   * free at the moment.
   *
   * @returns undefined when nothing was allocated, also without a promise
   * @throws StatusError when a requested value is not available
   */
  allocate(
    object: KubeObject,
    old: KubeObject | undefined,
    dryRun: boolean,
  ): Promise<Allocation | undefined> | undefined;
  /** Called with an object after it was removed from the store. Never fails. */
  release(object: KubeObject): Promise<void>;
}

/** The values that were allocated for one attempt. */
export interface Allocation {
  /**
   * Called when it is known whether the attempt stored the object: releases the values that it no longer has, or those
   * that were allocated for the attempt. Not called while the outcome is unknown. Never fails.
   */
  end(stored: boolean): Promise<void>;
}
