import { type Amount, amountOf } from './eviction-amount.ts';
import type { Signal } from './eviction-signals.ts';

/** A threshold is met when less than `value` of its signal is available. */
export interface Threshold {
  readonly signal: Signal;
  /** Hard: pods are evicted immediately and without a grace period. */
  readonly kind: 'hard' | 'soft';
  readonly value: Amount;
  /** Time that the threshold must be met before it takes effect; 0 for hard thresholds. */
  readonly graceMs: number;
  /** Amount above `value` that must be available before a threshold that was met is no longer met. */
  readonly minReclaim: Amount;
}

/** The observed value of a signal, in bytes or inodes. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
}

/** A signal is absent when the machine does not report it. */
export type Observations = ReadonlyMap<Signal, Observation>;

/**
 * Returns whether less than `value` is available; with `reclaim`, less than `value` plus `minReclaim`. A signal without
 * an observation meets no threshold.
 */
export function isMet(threshold: Threshold, observations: Observations, reclaim = false): boolean {
  const found = observations.get(threshold.signal);
  if (found === undefined) return false;
  const more = reclaim ? amountOf(threshold.minReclaim, found.capacity) : 0;
  return found.available < amountOf(threshold.value, found.capacity) + more;
}
