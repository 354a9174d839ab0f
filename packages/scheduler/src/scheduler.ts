import { ApiEventRecorder } from '@keelson/client';
import type { ControllerHost } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { eventLoopTurns, type Service } from '@keelson/core/runtime';
import { ClaimBinding } from './claim-binding.ts';
import { ClusterFeed, type SharedInformerOf } from './cluster/cluster-feed.ts';
import { type ClusterChange, ClusterState } from './cluster/cluster-state.ts';
import { isSameForOthers, type PodInfo } from './cluster/pod-info.ts';
import { type FitFailure, fitMessage, PlacementAlgorithm } from './placement/placement.ts';
import { findPreemption } from './placement/preemption.ts';
import { defaultFilters, defaultScores } from './plugins/default-plugins.ts';
import type { Filter, Score } from './plugins/plugin.ts';
import { PodWriter } from './pod-writer.ts';
import { type QueuedPod, type QueueOrder, SchedulingQueue } from './queue/scheduling-queue.ts';
import { type SchedulerMetrics, schedulerMetrics } from './scheduler-metrics.ts';

/** The `spec.schedulerName` of pods that name none. */
export const defaultSchedulerName = 'default-scheduler';

/** Options of a {@link Scheduler}. */
export interface SchedulerOptions extends ControllerHost {
  /** Pods with this `spec.schedulerName` are scheduled. Default `default-scheduler`. */
  readonly schedulerName?: string;
  /** Conditions in addition to the built-in ones. */
  readonly filters?: readonly Filter[];
  /** Preferences in addition to the built-in ones. */
  readonly scores?: readonly Score[];
  /** Weights that replace those of scores, by name; 0 switches a score off. */
  readonly weights?: Readonly<Record<string, number>>;
  /** Order of attempts. Default: priority, then waiting time. */
  readonly order?: QueueOrder;
  /** Percentage of nodes that are enough to choose from. Default 0: depends on the number of nodes. */
  readonly percentageOfNodesToScore?: number;
  /** Returns a number from 0 to below 1; decides between nodes with equal scores. Default `Math.random`. */
  readonly random?: () => number;
  /** Informers shared with others, for example with a controller manager. Default: the scheduler has its own. */
  readonly informerOf?: SharedInformerOf;
  /** Number of decisions that are written concurrently. Default 32. */
  readonly concurrentWrites?: number;
}

/**
 * Maximum number of events that wait to be written. It is large, because every assignment records one, and many pods
 * may be assigned at once.
 */
const maxQueuedEvents = 10_000;

const noNodes = 'no nodes available to schedule pods';

/** Assigns pods to nodes: filters, scores and preemption are those of kube-scheduler. */
export class Scheduler implements Service {
  readonly name = 'scheduler';
  readonly #options: SchedulerOptions;
  readonly #schedulerName: string;
  readonly #cluster = new ClusterState();
  readonly #queue: SchedulingQueue;
  readonly #feed: ClusterFeed;
  readonly #algorithm: PlacementAlgorithm;
  readonly #writer: PodWriter;
  readonly #events: ApiEventRecorder;
  readonly #metrics: SchedulerMetrics;
  readonly #writes = new Set<Promise<void>>();
  readonly #claims: ClaimBinding;
  /** Pods that wait for volumes; they may take long, so they are not limited as writes are. */
  readonly #waitingForClaims = new Set<Promise<void>>();
  #running: Promise<void> | undefined;
  #stopped = false;
  #wake = () => {};
  #isReady = false;

  constructor(options: SchedulerOptions) {
    const { client, clock, logger, schedulerName = defaultSchedulerName, weights = {} } = options;
    this.#options = options;
    this.#schedulerName = schedulerName;
    const component = schedulerName;
    const scores = [...defaultScores, ...(options.scores ?? [])];
    this.#algorithm = new PlacementAlgorithm({
      filters: [...defaultFilters, ...(options.filters ?? [])],
      scores: scores.map((score) => ({ ...score, weight: weights[score.name] ?? score.weight })),
      percentageOfNodesToScore: options.percentageOfNodesToScore ?? 0,
      random: options.random ?? Math.random,
    });
    this.#queue = new SchedulingQueue({
      clock,
      ready: () => {
        this.#isReady = true;
        this.#wake();
      },
      ...(options.order && { order: options.order }),
    });
    this.#feed = new ClusterFeed({
      client,
      clock,
      logger,
      informerOf: options.informerOf,
      cluster: this.#cluster,
      changed: (change) => {
        this.#queue.changed(change);
        if (change === 'ClaimChanged') this.#claims.changed();
      },
      pod: (pod, before) => this.#observe(pod, before),
      podGone: (pod) => this.#gone(pod),
    });
    this.#writer = new PodWriter({ client, clock, logger, component });
    this.#claims = new ClaimBinding({ client, clock, cluster: this.#cluster });
    this.#events = new ApiEventRecorder({
      client,
      source: { component },
      qps: 0,
      burst: 0,
      maxQueued: maxQueuedEvents,
      clock,
      logger,
    });
    this.#metrics = schedulerMetrics(options.metrics);
  }

  async start(): Promise<void> {
    await this.#feed.start();
    if (this.#stopped) return;
    this.#queue.start();
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake();
    this.#queue.stop();
    await this.#running;
    this.#claims.stop();
    await Promise.all(this.#waitingForClaims);
    await Promise.all(this.#writes);
    await this.#events.stop();
    await this.#feed.stop();
  }

  #observe(pod: PodInfo, earlier: PodInfo | undefined): void {
    if (pod.terminal) {
      this.#gone(pod);
    } else if (pod.nodeName !== '') {
      const before = this.#cluster.placed(pod.uid);
      this.#cluster.observe(pod);
      this.#queue.delete(pod.uid);
      if (before === undefined) this.#queue.changed('PodAssigned');
      else if (!isSameForOthers(before, pod)) this.#queue.changed('PodChanged');
    } else if (pod.schedulerName === this.#schedulerName) {
      this.#observeWaiting(pod, earlier);
    }
  }

  #observeWaiting(pod: PodInfo, before: PodInfo | undefined): void {
    if (pod.deleting) {
      this.#queue.delete(pod.uid);
      this.#cluster.denominate(pod.uid);
      return;
    }
    this.#queue.set(pod);
    if (this.#cluster.isPlaced(pod.uid)) return;
    if (pod.nominatedNodeName !== '') this.#cluster.nominate(pod, pod.nominatedNodeName);
    // When the previous state had no nomination either, this scheduler may have decided one that is not written yet; it
    // remains.
    else if (before?.nominatedNodeName !== '') this.#cluster.denominate(pod.uid);
  }

  #gone(pod: PodInfo): void {
    this.#queue.delete(pod.uid);
    this.#cluster.denominate(pod.uid);
    if (this.#cluster.remove(pod.uid) !== undefined || pod.nominatedNodeName !== '') {
      this.#queue.changed('PodDeleted');
      this.#claims.changed();
    }
  }

  async #run(): Promise<void> {
    const { concurrentWrites = 32 } = this.#options;
    while (!this.#stopped) {
      if (this.#writes.size >= concurrentWrites) await Promise.race(this.#writes);
      this.#isReady = false;
      const next = this.#queue.take();
      this.#reportPending();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          if (this.#isReady || this.#stopped) resolve();
        });
        continue;
      }
      this.#attempt(next);
      // One decision per turn of the event loop, so that requests and informers are served between decisions.
      await eventLoopTurns.pass();
    }
  }

  #attempt(queued: QueuedPod): void {
    const { clock, logger } = this.#options;
    const { pod } = queued;
    if (this.#cluster.isPlaced(pod.uid)) return;
    const began = clock.monotonic();
    if (this.#cluster.nodes.length === 0) {
      this.#reject(pod, began, noNodes, new Set(['NodeAdded']));
      return;
    }
    try {
      const placement = this.#algorithm.place(pod, this.#cluster);
      if ('failure' in placement) this.#rejectUnfit(pod, began, placement.failure);
      else {
        this.#cluster.assume(pod, placement.node.name);
        this.#queue.changed('PodAssigned');
        this.#assign(queued, placement.node.name, began);
      }
    } catch (err) {
      logger.error('a pod cannot be scheduled', { component: this.name, pod: pod.key, err });
      this.#failed(pod, began, err);
    }
  }

  #assign(queued: QueuedPod, nodeName: string, began: number): void {
    const { pod } = queued;
    if (pod.requirements.claims.length === 0 || this.#claims.unbound(pod).length === 0) {
      this.#write(this.#bind(queued, nodeName, began));
      return;
    }
    const waiting = this.#claims.bind(pod, nodeName).then(
      () => this.#write(this.#bind(queued, nodeName, began)),
      (err: unknown) => {
        if (this.#cluster.forget(pod.uid)) this.#queue.changed('PodDeleted');
        const reason = err instanceof Error ? err.message : String(err);
        if (!this.#stopped)
          this.#failed(pod, began, new Error(`running PreBind plugin "VolumeBinding": binding volumes: ${reason}`));
      },
    );
    this.#waitingForClaims.add(waiting);
    void waiting.finally(() => this.#waitingForClaims.delete(waiting));
  }

  #rejectUnfit(pod: PodInfo, began: number, failure: FitFailure): void {
    const { retryAfter } = failure;
    const nodes = this.#cluster.nodes.length;
    this.#metrics.preemptionAttempts.add(1);
    const preemption = findPreemption(failure, this.#cluster, this.#options.random ?? Math.random);
    if ('message' in preemption) {
      const { message, nominatedNodeName } = preemption;
      if (nominatedNodeName === '') this.#cluster.denominate(pod.uid);
      this.#reject(pod, began, fitMessage(failure, nodes, `preemption: ${message}`), retryAfter, nominatedNodeName);
      return;
    }
    const { node, victims } = preemption;
    const displaced = [...this.#cluster.nominatedFor(node.name)].filter(({ priority }) => priority < pod.priority);
    for (const { uid } of displaced) this.#cluster.denominate(uid);
    this.#cluster.nominate(pod, node.name);
    this.#reject(pod, began, fitMessage(failure, nodes), retryAfter, node.name);
    this.#metrics.preemptionVictims.observe(victims.length);
    this.#write(this.#preempt(pod, node.name, victims, displaced));
  }

  /** Deletes the victims; their deletion leads to the next attempt. */
  async #preempt(
    pod: PodInfo,
    nodeName: string,
    victims: readonly PodInfo[],
    displaced: readonly PodInfo[],
  ): Promise<void> {
    try {
      await Promise.all(displaced.map((other) => this.#writer.denominate(other)));
      for (const victim of victims) {
        await this.#writer.preempt(victim, pod.schedulerName);
        this.#record(victim, 'Normal', 'Preempted', `Preempted by pod ${pod.uid} on node ${nodeName}`);
      }
    } catch (err) {
      this.#options.logger.warn('a pod was not preempted', { component: this.name, pod: pod.key, node: nodeName, err });
      this.#cluster.denominate(pod.uid);
      this.#queue.retry(pod.uid);
    }
  }

  #reject(
    pod: PodInfo,
    began: number,
    message: string,
    retryAfter: ReadonlySet<ClusterChange>,
    nominatedNodeName?: string,
  ): void {
    this.#queue.failed(pod.uid, retryAfter);
    this.#count('unschedulable', began);
    this.#record(pod, 'Warning', 'FailedScheduling', message);
    this.#write(this.#writer.reject(pod, { reason: 'Unschedulable', message, nominatedNodeName }));
  }

  /** An attempt failed for a reason other than the state of the cluster. */
  #failed(pod: PodInfo, began: number, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#queue.failedToWrite(pod.uid);
    this.#count('error', began);
    this.#record(pod, 'Warning', 'FailedScheduling', message);
    this.#write(this.#writer.reject(pod, { reason: 'SchedulerError', message, nominatedNodeName: undefined }));
  }

  async #bind(queued: QueuedPod, nodeName: string, began: number): Promise<void> {
    const { clock, logger } = this.#options;
    const { pod, attempts, firstQueuedMs } = queued;
    try {
      await this.#writer.bind(pod, nodeName);
    } catch (err) {
      if (this.#cluster.forget(pod.uid)) this.#queue.changed('PodDeleted');
      if (isStatusError(err, StatusReason.NotFound) || isStatusError(err, StatusReason.Conflict)) {
        // The pod was deleted, replaced or assigned by others; the informer will report it.
        logger.debug('pod not assigned', { component: this.name, pod: pod.key, node: nodeName, err });
        this.#queue.failedToWrite(pod.uid);
        this.#count('error', began);
        return;
      }
      logger.warn('pod not assigned', { component: this.name, pod: pod.key, node: nodeName, err });
      this.#failed(pod, began, err);
      return;
    }
    this.#count('scheduled', began);
    this.#metrics.podSeconds.observe((clock.now() - firstQueuedMs) / 1000);
    this.#metrics.podAttempts.observe(attempts);
    this.#record(pod, 'Normal', 'Scheduled', `Successfully assigned ${pod.key} to ${nodeName}`);
  }

  #record({ namespace, name, uid }: PodInfo, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#events.record({ apiVersion: 'v1', kind: 'Pod', namespace, name, uid }, type, reason, message);
  }

  /** Remembers a write, which never rejects, until it has ended. */
  #write(write: Promise<void>): void {
    this.#writes.add(write);
    void write.finally(() => this.#writes.delete(write));
  }

  #count(result: 'scheduled' | 'unschedulable' | 'error', began: number): void {
    this.#metrics.attempts.add(1, { result });
    this.#metrics.attemptSeconds.observe((this.#options.clock.monotonic() - began) / 1000, { result });
  }

  #reportPending(): void {
    for (const queue of ['active', 'backoff', 'unschedulable', 'gated'] as const)
      this.#metrics.pending.set(this.#queue.size(queue), { queue });
  }
}
