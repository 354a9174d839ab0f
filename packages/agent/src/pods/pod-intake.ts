import type { Pod } from '@keelson/kinds';
import type { PodChange, PodConfigReader } from '../base/contracts/pod-source.ts';
import type { PodEvents } from '../base/events/pod-events.ts';
import { isMirrorPod } from '../base/pod/pod-annotations.ts';
import { fullNameOf, isFinalPhase, uidOf } from '../base/pod/pod-spec.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import { hardRefusal, type NodeOffer } from './admission.ts';
import { newPodRecord, type PodRecord } from './pod-record.ts';
import type { PodWorkers } from './pod-workers.ts';
import type { PodVerdict } from './status/pod-status.ts';
import type { StatusReports } from './status/status-reports.ts';

export interface PodIntakeOptions {
  readonly config: PodConfigReader;
  readonly states: RuntimePods;
  readonly workers: () => PodWorkers;
  readonly reports: StatusReports;
  readonly events: PodEvents;
  readonly offer: NodeOffer;
  /** Why the node, as short as it is, does not take a pod. */
  readonly shortFor: (pod: Pod) => PodVerdict | undefined;
}

/** Takes the pods of the sources, admits them, and hands them to their workers. */
export class PodIntake {
  readonly #options: PodIntakeOptions;
  readonly #mirrors = new Map<string, Pod>();
  #leave: () => void = () => {};

  constructor(options: PodIntakeOptions) {
    this.#options = options;
  }

  start(): void {
    const { config } = this.#options;
    this.#leave = config.subscribe((_, changes) => {
      for (const change of inOrder(changes)) this.#take(change);
    });
    for (const pod of inAge(config.pods())) this.#take({ op: 'add', pod, source: 'api' });
  }

  stop(): void {
    this.#leave();
  }

  /** The copy of a static pod at the API. */
  mirrorOf(fullName: string): Pod | undefined {
    return this.#mirrors.get(fullName);
  }

  /** The beginning of a pod: what was said about it before, and whether the node takes it. */
  remember(pod: Pod): PodRecord {
    const { offer, states, events, shortFor } = this.#options;
    const record = newPodRecord(pod.status ?? this.#mirrors.get(fullNameOf(pod))?.status ?? {});
    if (isKnown(pod) || states.get(uidOf(pod)) !== undefined) return record;
    const refused = hardRefusal(pod, this.#placesTaken(), offer);
    if (refused !== undefined) events.record(pod, 'Warning', refused.reason, refused.message);
    record.verdict = refused ?? shortFor(pod);
    return record;
  }

  /** While all pods together are fewer than the node takes, nobody needs to be counted. */
  #placesTaken(): number {
    const workers = this.#options.workers();
    if (workers.size < this.#options.offer.maxPods) return workers.size;
    let taken = 0;
    for (const { pod, record } of workers.all()) {
      if (pod && !isFinalPhase(record.status.phase) && record.verdict?.phase !== 'Failed') taken += 1;
    }
    return taken;
  }

  #take({ op, pod }: PodChange): void {
    if (isMirrorPod(pod)) {
      this.#takeMirror(op, pod);
      return;
    }
    const { workers, reports } = this.#options;
    if (op === 'remove') {
      workers().remove(uidOf(pod));
      return;
    }
    reports.seen(uidOf(pod), pod.status);
    if (op === 'reconcile') {
      const worker = workers().get(uidOf(pod));
      // Conditions of others may open or close the gates of readiness.
      if (worker !== undefined && pod.spec.readinessGates?.length) worker.update(pod);
      return;
    }
    workers().update(pod);
  }

  #takeMirror(op: PodChange['op'], mirror: Pod): void {
    const name = fullNameOf(mirror);
    if (op === 'remove') {
      if (this.#mirrors.get(name)?.metadata?.uid === mirror.metadata?.uid) this.#mirrors.delete(name);
      return;
    }
    this.#mirrors.set(name, mirror);
    for (const { pod, leaving } of this.#options.workers().named(name)) {
      if (pod && !leaving) this.#options.reports.seen(uidOf(pod), mirror.status);
    }
  }
}

/** A pod that this node has begun with is not refused any more. */
function isKnown({ status }: Pod): boolean {
  return status?.startTime !== undefined || (status?.containerStatuses?.length ?? 0) > 0;
}

function inAge(pods: readonly Pod[]): Pod[] {
  return [...pods].sort((a, b) =>
    String(a.metadata?.creationTimestamp ?? '').localeCompare(String(b.metadata?.creationTimestamp ?? '')),
  );
}

/** What goes makes room for what comes; mirrors before pods, whose beginnings they may tell. */
function inOrder(changes: readonly PodChange[]): PodChange[] {
  const rank = ({ op, pod }: PodChange) => (op === 'remove' ? 0 : isMirrorPod(pod) ? 1 : 2);
  return [...changes].sort((a, b) => rank(a) - rank(b));
}
