import { type Pod, qosClassOf } from '@keelson/kinds';
import { type PressureCondition, traitsOf } from '../../base/config/eviction-signals.ts';
import { isMet, type Observations, type Threshold } from '../../base/config/eviction-threshold.ts';
import type { PodVerdict } from '../../pods/status/pod-status.ts';
import { isSpared } from './critical-pod.ts';

/**
 * The thresholds that are met, since when, and the pressure conditions of the node. Times are monotonic milliseconds.
 *
 * A threshold is active when it was met for its grace period; it remains active until its value plus the minimum
 * reclaim is available. A condition begins with the first evaluation in which one of its thresholds is met, and ends
 * when none was met for the transition period.
 */
export class PressureState {
  readonly #thresholds: readonly Threshold[];
  readonly #transitionMs: number;
  #since: ReadonlyMap<Threshold, number> = new Map();
  #due: readonly Threshold[] = [];
  readonly #lastMs = new Map<PressureCondition, number>();
  #conditions: ReadonlySet<PressureCondition> = new Set();

  constructor(thresholds: readonly Threshold[], transitionMs: number) {
    this.#thresholds = thresholds;
    this.#transitionMs = transitionMs;
  }

  get conditions(): ReadonlySet<PressureCondition> {
    return this.#conditions;
  }

  /** Evaluates observations. Returns the active thresholds. */
  take(observations: Observations, nowMs: number): readonly Threshold[] {
    const met = this.#thresholds.filter((one) => isMet(one, observations, this.#due.includes(one)));
    this.#since = new Map(met.map((one) => [one, this.#since.get(one) ?? nowMs]));
    const now = new Set(met.map(({ signal }) => traitsOf(signal).condition));
    for (const condition of now) this.#lastMs.set(condition, nowMs);
    const lasting = [...this.#lastMs]
      .filter(([, ms]) => nowMs - ms < this.#transitionMs)
      .map(([condition]) => condition);
    this.#conditions = new Set([...now, ...lasting]);
    this.#due = met.filter((one) => nowMs - (this.#since.get(one) ?? nowMs) >= one.graceMs);
    return this.#due;
  }
}

/**
 * Why a node under pressure rejects a pod: under memory pressure BestEffort pods, under disk pressure all pods.
 * Undefined when the pod is admitted.
 */
export function pressureRejection(
  pod: Pod,
  conditions: ReadonlySet<PressureCondition>,
  gates: Readonly<Record<string, boolean>>,
): PodVerdict | undefined {
  const refused =
    conditions.has('DiskPressure') || (conditions.has('MemoryPressure') && qosClassOf(pod.spec) === 'BestEffort');
  if (!refused || isSpared(pod, gates)) return undefined;
  const message = `The node had condition: [${[...conditions].sort().reverse().join(' ')}].`;
  return { phase: 'Failed', reason: 'Evicted', message };
}
