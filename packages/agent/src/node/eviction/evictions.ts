import type { Clock, Counter, Logger, Metrics } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import type { Observation, Threshold } from '../../base/config/eviction-threshold.ts';
import type { PodEvents } from '../../base/events/event-recorder.ts';
import { fullNameOf } from '../../base/pod/pod-spec.ts';
import type { PodWorker } from '../../pods/pod-workers.ts';
import type { PodVerdict } from '../../pods/status/pod-status.ts';
import { evictionMessage } from './eviction-message.ts';
import type { ExceededLimit } from './storage-limits.ts';
import type { ActivePod, Victim } from './victims.ts';

export interface EvictionsOptions {
  /** The longest grace period for a soft threshold, in seconds; negative: the grace period of the pod. */
  readonly maxPodGraceSeconds: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly podEvents: PodEvents;
}

interface Pending {
  readonly worker: PodWorker;
  readonly message: string;
  readonly untilMs: number;
  gone: boolean;
  hard: boolean;
}

/** How long after its grace period an evicted pod delays the next eviction. */
const cleanUpMs = 30_000;
const defaultGraceSeconds = 30;

/** Evicts pods, one at a time: the resources of a pod are free only when it has ended. */
export class Evictions {
  readonly #options: EvictionsOptions;
  readonly #count: Counter;
  #pending: Pending | undefined;

  constructor(options: EvictionsOptions) {
    this.#options = options;
    this.#count = options.metrics.counter({
      name: 'keelson_agent_evictions_total',
      help: 'Pods that were evicted, by the signal that was too low, or the limit that they exceeded.',
      labels: ['signal'],
    });
  }

  /**
   * True while an evicted pod is being ended, for a limited time. A hard threshold ends the grace period that a soft
   * threshold granted.
   */
  busy(hard: boolean): boolean {
    const { clock, logger } = this.#options;
    const pending = this.#pending;
    if (pending === undefined || pending.gone) return false;
    if (clock.monotonic() >= pending.untilMs) {
      logger.warn('an evicted pod has not ended in time', { component: 'eviction', uid: pending.worker.uid });
      this.#pending = undefined;
      return false;
    }
    if (hard && !pending.hard) {
      pending.hard = true;
      void pending.worker.evict(verdict(pending.message), 0);
    }
    return true;
  }

  /** Evicts a pod that exceeds its own limit, immediately and independent of other evictions. */
  evictForLimit({ worker, pod }: ActivePod, { signal, message }: ExceededLimit): void {
    this.#options.logger.warn('pod is evicted', {
      component: 'eviction',
      ...{ pod: fullNameOf(pod), uid: worker.uid, signal, message },
    });
    void this.#carryOut({ worker, pod }, signal, message, 0);
  }

  /** Evicts a pod because of a threshold; `busy` is true until it has ended. */
  evict(
    { worker, pod, found, usage, request, priority }: Victim,
    threshold: Threshold,
    observation: Observation,
    hard: boolean,
  ): void {
    const { clock, logger } = this.#options;
    const { signal } = threshold;
    const message = evictionMessage(threshold, observation, { pod, found });
    const graceSeconds = hard ? 0 : this.#softGrace(pod);
    logger.warn('pod is evicted', {
      component: 'eviction',
      ...{ pod: fullNameOf(pod), uid: worker.uid, signal, usage, request, priority, graceSeconds },
    });
    const untilMs = clock.monotonic() + graceSeconds * 1000 + cleanUpMs;
    const pending = { worker, message, untilMs, gone: false, hard };
    this.#pending = pending;
    void this.#carryOut({ worker, pod }, signal, message, graceSeconds).then(() => {
      pending.gone = true;
    });
  }

  /** Resolves when the pod has ended. */
  #carryOut({ worker, pod }: ActivePod, signal: string, message: string, graceSeconds: number): Promise<void> {
    this.#options.podEvents.record(pod, 'Warning', 'Evicted', message);
    this.#count.add(1, { signal });
    return worker.evict(verdict(message), graceSeconds);
  }

  #softGrace({ spec }: Pod): number {
    const { maxPodGraceSeconds } = this.#options;
    const own = Number(spec.terminationGracePeriodSeconds ?? defaultGraceSeconds);
    return maxPodGraceSeconds < 0 ? own : Math.min(maxPodGraceSeconds, own);
  }
}

function verdict(message: string): PodVerdict {
  return { phase: 'Failed', reason: 'Evicted', message };
}
