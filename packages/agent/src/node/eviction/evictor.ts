import type { Clock, Logger } from '@keelson/core/runtime';
import type { EvictionConfig } from '../../base/config/agent-config.ts';
import { type PressureCondition, type ScarceResource, signals, traitsOf } from '../../base/config/eviction-signals.ts';
import { isMet, type Observation, type Threshold } from '../../base/config/eviction-threshold.ts';
import type { EventRecorder, EventSubject } from '../../base/events/event-recorder.ts';
import { Repeater } from '../../base/repeater.ts';
import { withDeadline } from '../../base/with-deadline.ts';
import { availableText, thresholdText } from './eviction-message.ts';
import type { Evictions } from './evictions.ts';
import type { Findings, Observer } from './observer.ts';
import type { PressureState } from './pressure.ts';
import { rankVictims, type VictimsOptions } from './victims.ts';

/** Frees resources that no pod of the node uses. */
export type Reclaim = (signal: AbortSignal) => Promise<void>;

export interface EvictorOptions {
  readonly config: Pick<EvictionConfig, 'thresholds'>;
  /** Updated with every observation. */
  readonly pressure: PressureState;
  readonly observer: Observer;
  readonly evictions: Evictions;
  readonly victims: VictimsOptions;
  /** Attempted before a pod is evicted. */
  readonly reclaims: { readonly containers: Reclaim; readonly images: Reclaim };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly events: EventRecorder;
  /** The node, as the subject of events. */
  readonly node: EventSubject;
  readonly periodMs: number;
  /** Called when the pressure conditions of the node have changed. */
  readonly onChange: () => void;
}

/** Limit of the first evaluation, so that a runtime that does not answer cannot block the start of the agent. */
const firstEvaluationMs = 10_000;

/** A resource that is short, with the thresholds that require action. */
interface Shortage {
  /** The most urgent. */
  readonly threshold: Threshold;
  readonly observation: Observation;
  readonly resource: ScarceResource;
  /** All active thresholds of the resource. */
  readonly due: readonly Threshold[];
  /** Pods get no grace period. */
  readonly hard: boolean;
  readonly ownImagefs: boolean;
}

/**
 * Prevents the node from running out of memory and disk: observes signals, reclaims unused files, and if that is not
 * enough evicts one pod per round. See docs/reference/agent-rules.md#eviction.
 */
export class Evictor {
  readonly #options: EvictorOptions;
  readonly #loop: Repeater;
  readonly #stop = new AbortController();

  constructor(options: EvictorOptions) {
    const { clock, logger, periodMs } = options;
    this.#options = options;
    this.#loop = new Repeater({ clock, logger, what: 'look for shortage', periodMs, run: () => this.#round() });
  }

  /**
   * Resolves after the first evaluation, so that no pod is admitted and no status reported without knowing the
   * pressure.
   */
  async start(): Promise<void> {
    const { config, clock, logger } = this.#options;
    if (config.thresholds.length === 0) return;
    try {
      await withDeadline(clock, firstEvaluationMs, this.#stop.signal, () => this.#look());
    } catch (err) {
      logger.warn('the first evaluation of eviction thresholds has not completed in time', {
        component: 'eviction',
        err,
      });
    }
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop.stop();
  }

  /** Requests an evaluation now. */
  now(): void {
    this.#loop.now();
  }

  async #round(): Promise<void> {
    const { signal } = this.#stop;
    const { evictions, victims, logger } = this.#options;
    const shortage = await this.#look();
    if (shortage === undefined || signal.aborted) return;
    const { threshold, observation, resource, hard, ownImagefs } = shortage;
    this.#tell(shortage);
    if (evictions.busy(hard)) return;
    if (resource !== 'memory' && (await this.#reclaim(shortage))) return;
    const [victim] = await rankVictims(resource, ownImagefs, victims, signal);
    if (signal.aborted) return;
    if (victim === undefined) logger.warn('no pod is left to evict', { component: 'eviction', resource });
    else evictions.evict(victim, threshold, observation, hard);
  }

  async #look(): Promise<Shortage | undefined> {
    const { observer, pressure, clock, logger, onChange } = this.#options;
    const before = wordsOf(pressure.conditions);
    const findings = await observer.look(this.#stop.signal);
    const due = pressure.take(findings.observations, clock.monotonic());
    const after = wordsOf(pressure.conditions);
    if (after !== before) {
      logger.warn('pressure on the node changed', { component: 'eviction', before, after });
      onChange();
    }
    return shortageOf(due, findings);
  }

  #tell({ threshold, observation, resource }: Shortage): void {
    const { logger, events, node } = this.#options;
    logger.warn('eviction threshold is met', {
      component: 'eviction',
      ...{ signal: threshold.signal, kind: threshold.kind, resource },
      ...{ threshold: thresholdText(threshold, observation), available: availableText(threshold, observation) },
    });
    events.record(node, 'Warning', 'EvictionThresholdMet', `Attempting to reclaim ${resource}`);
  }

  /** Frees disk space without affecting running pods. Returns whether that was enough. */
  async #reclaim({ resource, due, ownImagefs }: Shortage): Promise<boolean> {
    const { reclaims, observer, logger } = this.#options;
    const { signal } = this.#stop;
    const ofImages = resource === 'imagefs' || resource === 'imagefsInodes';
    const steps = ownImagefs
      ? [ofImages ? reclaims.images : reclaims.containers]
      : [reclaims.containers, reclaims.images];
    for (const step of steps) {
      await step(signal);
      if (signal.aborted) return true;
      const { observations } = await observer.look(signal);
      if (due.some((one) => isMet(one, observations, true))) continue;
      logger.info('resource was reclaimed without eviction', { component: 'eviction', resource });
      return true;
    }
    return false;
  }
}

/** Memory before disks, and hard thresholds before soft ones. */
function shortageOf(due: readonly Threshold[], { observations, ownImagefs }: Findings): Shortage | undefined {
  const rank = ({ signal, kind }: Threshold) => signals.indexOf(signal) * 2 + Number(kind === 'soft');
  const [threshold] = [...due].sort((a, b) => rank(a) - rank(b));
  const observation = threshold && observations.get(threshold.signal);
  if (threshold === undefined || observation === undefined) return undefined;
  const { resource } = traitsOf(threshold.signal);
  const ofResource = due.filter(({ signal }) => traitsOf(signal).resource === resource);
  const hard = ofResource.some(({ kind }) => kind === 'hard');
  return { threshold, observation, resource, due: ofResource, hard, ownImagefs };
}

function wordsOf(conditions: ReadonlySet<PressureCondition>): string {
  return [...conditions].sort().join(', ');
}
