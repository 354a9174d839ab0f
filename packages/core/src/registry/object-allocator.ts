import type { KubeObject } from '../meta/types.ts';

/**
 * Allocates values outside the objects of a kind, such as the addresses of services: values of which no two objects may
 * have the same.
 */
export interface ObjectAllocator {
  /**
   * Called before each attempt to store an object, after admission and validation. Sets the allocated fields of
   * `object`. `old` is the stored object, undefined for a new one. A dry run allocates nothing and sets values that are
   * free at the moment.
   *
   * @throws StatusError when a requested value is not available
   */
  allocate(object: KubeObject, old: KubeObject | undefined, dryRun: boolean): Promise<Allocation>;
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
