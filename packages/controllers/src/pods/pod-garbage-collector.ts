import { Informer } from '@keelson/client';
import { formatTime, isStatusError, StatusReason } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { Lease, Node, Pod, type PodCondition } from '@keelson/kinds';
import type { ControllerOptions } from '../controller-options.ts';
import { isTerminated, type KeptNode, type KeptPod, keepNode, keepPod, oldestFirst } from './kept-objects.ts';

export interface PodGarbageCollectorOptions extends ControllerOptions {
  /** Number of ended pods that are kept; the oldest others are deleted. 0 keeps all. Default 12,500. */
  readonly terminatedPodThreshold?: number;
}

const passEveryMs = 20_000;
/** Time for which a missing node may still register. */
const quarantineMs = 40_000;
/** A node whose Lease was not renewed for this time is not ready, regardless of its last reported conditions. */
const nodeGracePeriodMs = 40_000;
const concurrentDeletes = 8;
const nodeGone = { reason: 'DeletionByPodGC', message: 'PodGC: node no longer exists' } as const;

interface PodToDelete {
  readonly pod: KeptPod;
  readonly condition?: Pick<PodCondition, 'reason' | 'message'>;
}

/**
 * Deletes pods that no agent will terminate: those bound to a node that does not exist, those being deleted on a node
 * that an administrator has marked as out of service, those being deleted before they were bound, and the oldest ended
 * pods beyond the threshold. Rules and times are those of the pod garbage collector of kube-controller-manager.
 */
export class PodGarbageCollector implements Service {
  readonly name = 'pod-garbage-collector-controller';
  readonly #options: PodGarbageCollectorOptions;
  readonly #pods: Informer<Pod, KeptPod>;
  readonly #nodes: Informer<Node, KeptNode>;
  /** Monotonic time since which a node with bound pods is missing. */
  readonly #missingSince = new Map<string, number>();
  #cancel: () => void = () => {};
  #stopped = false;
  #pass: Promise<void> | undefined;

  constructor(options: PodGarbageCollectorOptions) {
    this.#options = options;
    const { client } = options;
    this.#pods = new Informer({ ...options, client: client.resource(Pod), keep: keepPod });
    this.#nodes = new Informer({ ...options, client: client.resource(Node), keep: keepNode });
  }

  async start(): Promise<void> {
    await Promise.all([this.#pods.start(), this.#nodes.start()]);
    this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await Promise.all([this.#pods.stop(), this.#nodes.stop()]);
    await this.#pass;
  }

  #run(): void {
    if (this.#stopped) return;
    this.#pass = this.#collect()
      .catch((err: unknown) => this.#options.logger.warn('pods cannot be collected', { component: this.name, err }))
      .finally(() => {
        if (!this.#stopped) this.#cancel = this.#options.clock.after(passEveryMs, () => this.#run());
      });
  }

  async #collect(): Promise<void> {
    const missing = await this.#missingNodes();
    const outOfService = await this.#nodesOutOfService();
    const podsToDelete = new Map<string, PodToDelete>();
    for (const pod of this.#excessTerminated()) podsToDelete.set(pod.uid, { pod });
    for (const pod of this.#pods.values()) {
      const { nodeName, deleting } = pod;
      if (deleting && (nodeName === '' || outOfService.has(nodeName))) podsToDelete.set(pod.uid, { pod });
      if (missing.has(nodeName)) podsToDelete.set(pod.uid, { pod, condition: nodeGone });
    }
    const queue = podsToDelete.values();
    const work = async () => {
      for (const entry of queue) if (!this.#stopped) await this.#remove(entry);
    };
    await Promise.all(Array.from({ length: concurrentDeletes }, work));
  }

  #excessTerminated(): KeptPod[] {
    const { terminatedPodThreshold: threshold = 12_500 } = this.#options;
    if (threshold <= 0) return [];
    const ended = [...this.#pods.values()].filter(isTerminated);
    return ended.length > threshold ? ended.sort(oldestFirst).slice(0, ended.length - threshold) : [];
  }

  /** Nodes with bound pods that have been missing for the quarantine and do not exist on the server. */
  async #missingNodes(): Promise<Set<string>> {
    const now = this.#options.clock.monotonic();
    const absent = new Set<string>();
    for (const { nodeName } of this.#pods.values())
      if (nodeName !== '' && !this.#nodes.get(nodeName)) absent.add(nodeName);
    for (const name of this.#missingSince.keys()) if (!absent.has(name)) this.#missingSince.delete(name);
    const missing = new Set<string>();
    for (const name of absent) {
      const since = this.#missingSince.get(name) ?? now;
      this.#missingSince.set(name, since);
      if (now - since < quarantineMs) continue;
      const found = await this.#options.client.resource(Node).get(name).catch(missingIsUndefined);
      if (found === undefined) missing.add(name);
    }
    return missing;
  }

  /** Nodes with the taint out-of-service that are not ready. */
  async #nodesOutOfService(): Promise<Set<string>> {
    const names = new Set<string>();
    for (const node of this.#nodes.values()) {
      if (node.outOfService && !(node.ready && (await this.#renewsLease(node.name)))) names.add(node.name);
    }
    return names;
  }

  async #renewsLease(name: string): Promise<boolean> {
    const leases = this.#options.client.resource(Lease).namespace('kube-node-lease');
    const renewTime = (await leases.get(name).catch(missingIsUndefined))?.spec?.renewTime;
    return renewTime === undefined || this.#options.clock.now() - Date.parse(renewTime) <= nodeGracePeriodMs;
  }

  /** Sets the phase Failed, because no agent will report the status, and deletes the pod without a grace period. */
  async #remove({ pod, condition }: PodToDelete): Promise<void> {
    const { clock, client, logger } = this.#options;
    const { namespace, name, uid } = pod;
    const pods = client.resource(Pod).namespace(namespace);
    const lastTransitionTime = formatTime(new Date(clock.now()));
    const conditions = condition && [{ type: 'DisruptionTarget', status: 'True', ...condition, lastTransitionTime }];
    try {
      if (!isTerminated(pod)) {
        const status = { phase: 'Failed', ...(conditions && { conditions }) };
        await pods.patchSubresource(name, 'status', 'strategic', { metadata: { uid }, status });
      }
      await pods.delete(name, { gracePeriodSeconds: 0, preconditions: { uid } });
      logger.info('pod deleted', {
        component: this.name,
        pod: `${namespace}/${name}`,
        node: pod.nodeName,
        reason: condition?.reason,
      });
    } catch (err) {
      // The pod has been deleted, or another pod has its name.
      if (isStatusError(err, StatusReason.NotFound) || isStatusError(err, StatusReason.Conflict)) return;
      logger.warn('pod not deleted', { component: this.name, pod: `${namespace}/${name}`, err });
    }
  }
}

function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}
