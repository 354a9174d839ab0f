import { type ApiClient, formatTime, isStatusError, StatusReason } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Pod, type PodCondition } from '@keelson/kinds';
import type { PodInfo } from './cluster/pod-info.ts';

export interface PodWriterOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly component: string;
}

/** The change of a pod's status after an attempt. */
export interface AttemptStatus {
  readonly reason: 'Unschedulable' | 'SchedulerError';
  readonly message: string;
  /** New value of `status.nominatedNodeName`; undefined: the present one is kept. */
  readonly nominatedNodeName: string | undefined;
}

/** Writes decisions to the server. */
export class PodWriter {
  readonly #options: PodWriterOptions;

  constructor(options: PodWriterOptions) {
    this.#options = options;
  }

  /**
   * Assigns a pod. Fails with 409 when it is assigned already, or has another UID. After another failure the pod is
   * read, because the binding may have been written; otherwise its resources would be given to the next pod.
   */
  async bind({ namespace, name, uid }: PodInfo, nodeName: string): Promise<void> {
    const pods = this.#pods(namespace);
    const metadata = { name, namespace, uid };
    const target = { kind: 'Node', name: nodeName };
    try {
      await pods.createSubresource(name, 'binding', { apiVersion: 'v1', kind: 'Binding', metadata, target } as never);
    } catch (error) {
      if (isStatusError(error, StatusReason.NotFound) || isStatusError(error, StatusReason.Conflict)) throw error;
      const pod = await pods.get(name).catch(() => undefined);
      if (pod?.metadata?.uid !== uid || pod?.spec.nodeName !== nodeName) throw error;
    }
  }

  /** Records why a pod was not assigned. A failure is logged only; the next attempt writes again. */
  async reject(pod: PodInfo, { reason, message, nominatedNodeName }: AttemptStatus): Promise<void> {
    const before = pod.object?.status?.conditions?.find(({ type }) => type === 'PodScheduled');
    const isSame = before?.status === 'False' && before.reason === reason && before.message === message;
    const isNominated = nominatedNodeName === undefined || nominatedNodeName === pod.nominatedNodeName;
    if (isSame && isNominated) return;
    const now = formatTime(new Date(this.#options.clock.now()));
    const lastTransitionTime = before?.status === 'False' ? (before.lastTransitionTime ?? now) : now;
    const observedGeneration = pod.object?.metadata?.generation ?? 0;
    const state = { status: 'False', reason, message, observedGeneration, lastTransitionTime };
    const condition: PodCondition = { type: 'PodScheduled', ...state };
    await this.#patch(pod, {
      ...(isSame ? {} : { conditions: [condition] }),
      ...(isNominated ? {} : { nominatedNodeName: nominatedNodeName === '' ? null : nominatedNodeName }),
    });
  }

  /** Withdraws the nomination of a pod. */
  async denominate(pod: PodInfo): Promise<void> {
    if (pod.nominatedNodeName !== '') await this.#patch(pod, { nominatedNodeName: null });
  }

  async #patch(pod: PodInfo, status: object): Promise<void> {
    const { logger, component } = this.#options;
    try {
      await this.#pods(pod.namespace).patchSubresource(pod.name, 'status', 'strategic', {
        metadata: { uid: pod.uid },
        status,
      });
    } catch (err) {
      if (isStatusError(err, StatusReason.NotFound) || isStatusError(err, StatusReason.Conflict)) return;
      logger.warn('status of a pod not written', { component, pod: pod.key, err });
    }
  }

  /** Deletes a pod with its grace period, after recording why. */
  async preempt(victim: PodInfo, preemptor: string): Promise<void> {
    const lastTransitionTime = formatTime(new Date(this.#options.clock.now()));
    const message = `${preemptor}: preempting to accommodate a higher priority pod`;
    const condition: PodCondition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      message,
      lastTransitionTime,
    };
    const pods = this.#pods(victim.namespace);
    try {
      await pods.patchSubresource(victim.name, 'status', 'strategic', {
        metadata: { uid: victim.uid },
        status: { conditions: [condition] },
      });
      await pods.delete(victim.name, { preconditions: { uid: victim.uid } });
    } catch (err) {
      // The pod has been deleted, or another pod has its name.
      if (!isStatusError(err, StatusReason.NotFound) && !isStatusError(err, StatusReason.Conflict)) throw err;
    }
  }

  #pods(namespace: string) {
    return this.#options.client.resource(Pod).namespace(namespace);
  }
}
