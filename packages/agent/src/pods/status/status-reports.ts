import { WorkQueue, type WorkResult } from '@keelson/client';
import { type ApiClient, isStatusError } from '@keelson/core';
import { equalJson } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Pod, type PodStatus } from '@keelson/kinds';
import { fullNameOf, isStaticPod, uidOf } from '../../base/pod/pod-spec.ts';

interface Report {
  pod: Pod;
  status: PodStatus;
  /** The status of the object at the API, as last observed. */
  known: PodStatus | undefined;
  /** The status at the API equals the agent's status. */
  agreed: boolean;
  /** All resources of the pod are removed: its object may be deleted after the last status was written. */
  ended: boolean;
}

export interface StatusReportsOptions {
  /** Undefined: statuses are not written, but can still be read. */
  readonly api: ApiClient | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The mirror pod of a static pod, by its full name. */
  readonly mirrorOf: (fullName: string) => Pod | undefined;
  /** Interval of the check for statuses that were not written. */
  readonly batchMs: number;
}

const writers = 10;
const firstRetryMs = 200;
const maxRetryMs = 10_000;
/** Delay of the status of a starting pod. Most pods run before it ends, and only the later status is written. */
const beginningMs = 1_000;
const beginnings: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

/**
 * Stores the latest status of each pod and writes it to the API server: only changes, one write per pod at a time.
 */
export class StatusReports {
  readonly #options: StatusReportsOptions;
  readonly #reports = new Map<string, Report>();
  readonly #queue: WorkQueue;
  #cancel: () => void = () => {};

  constructor(options: StatusReportsOptions) {
    this.#options = options;
    const { clock, logger } = options;
    const work = (uid: string, signal: AbortSignal): Promise<WorkResult> =>
      this.#send(uid, signal).then(() => undefined);
    this.#queue = new WorkQueue({
      name: 'pod-status',
      work,
      clock,
      logger,
      workers: writers,
      firstRetryMs,
      maxRetryMs,
    });
  }

  start(): void {
    this.#cancel = this.#options.clock.after(this.#options.batchMs, () => {
      for (const [uid, { agreed, ended }] of this.#reports) if (ended || !agreed) this.#enqueue(uid);
      this.start();
    });
  }

  async stop(): Promise<void> {
    this.#cancel();
    await this.#queue.stop();
  }

  get(uid: string): PodStatus | undefined {
    return this.#reports.get(uid)?.status;
  }

  /** Sets the status of a pod; an equal status causes no write. */
  set(pod: Pod, status: PodStatus): void {
    const uid = uidOf(pod);
    const report = this.#reports.get(uid);
    if (report === undefined) this.#reports.set(uid, { pod, status, known: undefined, agreed: false, ended: false });
    else {
      report.pod = pod;
      if (equalJson(report.status, status)) return;
      report.status = status;
      report.agreed = false;
    }
    if (isBeginning(status)) this.#enqueueSoon(uid);
    else this.#enqueue(uid);
  }

  /** Compares the status of an object that was read from the API, and corrects it if it differs. */
  observe(uid: string, status: PodStatus | undefined): void {
    const report = this.#reports.get(uid);
    if (report === undefined) return;
    report.known = status;
    report.agreed = statusPatch(status ?? {}, report.status) === undefined;
    if (!report.agreed) this.#enqueue(uid);
  }

  /** Permits the deletion of the object after its last status was written, since all resources are removed. */
  ended(pod: Pod): void {
    const report = this.#reports.get(uidOf(pod)) ?? { pod, status: {}, known: undefined, agreed: true, ended: true };
    report.ended = true;
    this.#reports.set(uidOf(pod), report);
    this.#enqueue(uidOf(pod));
  }

  forget(uid: string): void {
    this.#reports.delete(uid);
  }

  #enqueue(uid: string): void {
    if (this.#options.api !== undefined) this.#queue.add(uid);
  }

  #enqueueSoon(uid: string): void {
    if (this.#options.api !== undefined) this.#queue.addAfter(uid, beginningMs);
  }

  async #send(uid: string, signal: AbortSignal): Promise<void> {
    const { api, mirrorOf } = this.#options;
    const report = this.#reports.get(uid);
    if (report === undefined || api === undefined) return;
    const isStatic = isStaticPod(report.pod);
    const target = isStatic ? mirrorOf(fullNameOf(report.pod)) : report.pod;
    if (target === undefined) return;
    const { name = '', namespace = '', uid: targetUid } = target.metadata ?? {};
    const client = api.resource(Pod).namespace(namespace);
    const patch = statusPatch((isStatic ? target.status : (report.known ?? target.status)) ?? {}, report.status);
    try {
      if (patch !== undefined) {
        const body = { metadata: { uid: targetUid }, status: patch };
        const answer = await client.patchSubresource(name, 'status', 'strategic', body, { signal });
        report.known = (answer as Pod).status;
      }
      report.agreed = patch === undefined || statusPatch(report.known ?? {}, report.status) === undefined;
      if (report.ended && !isStatic) {
        await client.delete(name, { gracePeriodSeconds: 0, preconditions: { uid: targetUid ?? uid }, signal });
        this.#reports.delete(uid);
      }
    } catch (error) {
      // The object was deleted or replaced: there is no status to write.
      if (!isGone(error)) throw error;
      if (report.ended) this.#reports.delete(uid);
      report.known = report.status;
      report.agreed = true;
    }
  }
}

/** True for a status that only shows that the pod is starting. */
function isBeginning({ phase, reason, containerStatuses = [], initContainerStatuses = [] }: PodStatus): boolean {
  if (phase !== 'Pending' || reason !== undefined) return false;
  return [...initContainerStatuses, ...containerStatuses].every(
    ({ state, lastState }) => beginnings.has(state?.waiting?.reason ?? '') && lastState?.terminated === undefined,
  );
}

function isGone(error: unknown): boolean {
  return isStatusError(error, 'NotFound') || isStatusError(error, 'Conflict');
}

/** Lists that a strategic merge patch would merge by key, and so would never shrink. */
const replaced = new Set(['podIPs', 'hostIPs']);
/** Fields that the agent owns; it does not revert changes of other fields. */
const own: readonly (keyof PodStatus)[] = [
  'observedGeneration',
  'phase',
  'conditions',
  'message',
  'reason',
  'hostIP',
  'hostIPs',
  'podIP',
  'podIPs',
  'startTime',
  'initContainerStatuses',
  'containerStatuses',
  'ephemeralContainerStatuses',
  'qosClass',
];

/**
 * The strategic merge patch that changes the agent's fields of `old` to those of `next`; undefined when they are equal.
 */
export function statusPatch(old: PodStatus, next: PodStatus): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of own) {
    const value = next[key];
    if (key === 'conditions') {
      const changed = (next.conditions ?? []).filter(
        (condition) =>
          !equalJson(
            condition,
            old.conditions?.find(({ type }) => type === condition.type),
          ),
      );
      if (changed.length > 0)
        patch['conditions'] = changed.map((condition) => ({ reason: null, message: null, ...condition }));
    } else if (!equalJson(old[key], value)) {
      if (value === undefined) patch[key] = null;
      else patch[key] = replaced.has(key) && Array.isArray(value) ? [...value, { $patch: 'replace' }] : value;
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
