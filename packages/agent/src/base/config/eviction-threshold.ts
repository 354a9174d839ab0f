import { type Amount, amountOf } from './eviction-amount.ts';
import type { Signal } from './eviction-signals.ts';

/** Below `value` of a signal pods are evicted. */
export interface Threshold {
  readonly signal: Signal;
  /** Hard: at once, and pods get no time to end. */
  readonly kind: 'hard' | 'soft';
  readonly value: Amount;
  /** How long it must be met; 0 for hard ones. */
  readonly graceMs: number;
  /** What has to be won back beyond the value, once it was met. */
  readonly minReclaim: Amount;
}

/** What a signal shows: bytes or inodes. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
}

/** Signals without an observation are of machines that do not tell. */
export type Observations = ReadonlyMap<Signal, Observation>;

/**
 * Whether less is available than the threshold says; with `reclaim`, than has to be won back. A signal that was not
 * observed meets nothing.
 */
export function isMet(threshold: Threshold, observations: Observations, reclaim = false): boolean {
  const found = observations.get(threshold.signal);
  if (found === undefined) return false;
  const more = reclaim ? amountOf(threshold.minReclaim, found.capacity) : 0;
  return found.available < amountOf(threshold.value, found.capacity) + more;
}
