import type { Pod } from '@keelson/kinds';
import type { PodEvents } from '../base/events/pod-events.ts';
import { fullNameOf, isFinalPhase, uidOf } from '../base/pod/pod-spec.ts';
import type { RuntimePods } from '../runtime-view/runtime-pods.ts';
import { type NodeOffer, permanentRejection } from './admission.ts';
import type { MirrorIndex } from './mirror-index.ts';
import { newPodRecord, type PodRecord } from './pod-record.ts';
import type { PodVerdict } from './status/pod-status.ts';

/** The pods that the node has accepted. */
export interface AcceptedPods {
  readonly size: number;
  all(): Iterable<{ readonly pod: Pod | undefined; readonly record: PodRecord }>;
}

export interface PodAdmissionOptions {
  readonly offer: NodeOffer;
  readonly states: Pick<RuntimePods, 'get'>;
  readonly mirrors: MirrorIndex;
  readonly events: PodEvents;
  /** Why the node rejects a pod under its present pressure; undefined = the pod is accepted. */
  readonly shortFor: (pod: Pod) => PodVerdict | undefined;
}

/** Decides whether the node accepts a new pod. */
export class PodAdmission {
  readonly #options: PodAdmissionOptions;

  constructor(options: PodAdmissionOptions) {
    this.#options = options;
  }

  /** The first record of a pod: its last reported status, and the verdict when the pod is rejected. */
  recordOf(pod: Pod, accepted: AcceptedPods): PodRecord {
    const { offer, states, mirrors, events, shortFor } = this.#options;
    const record = newPodRecord(pod.status ?? mirrors.get(fullNameOf(pod))?.status ?? {});
    if (hasStarted(pod) || states.get(uidOf(pod)) !== undefined) return record;
    const refused = permanentRejection(pod, this.#placesTaken(accepted), offer);
    if (refused !== undefined) events.record(pod, 'Warning', refused.reason, refused.message);
    record.verdict = refused ?? shortFor(pod);
    return record;
  }

  /** Finished pods are only excluded from the count when the total exceeds the limit. */
  #placesTaken(accepted: AcceptedPods): number {
    if (accepted.size < this.#options.offer.maxPods) return accepted.size;
    let taken = 0;
    for (const { pod, record } of accepted.all()) {
      if (pod && !isFinalPhase(record.status.phase) && record.verdict?.phase !== 'Failed') taken += 1;
    }
    return taken;
  }
}

/** A pod that has been started on this node is not rejected any more. */
function hasStarted({ status }: Pod): boolean {
  return status?.startTime !== undefined || (status?.containerStatuses?.length ?? 0) > 0;
}
