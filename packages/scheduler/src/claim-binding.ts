import type { ApiClient } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { PersistentVolumeClaim } from '@keelson/kinds';
import type { ClusterState } from './cluster/cluster-state.ts';
import type { PodInfo } from './cluster/pod-info.ts';

export interface ClaimBindingOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly cluster: ClusterState;
}

/** Annotation of a claim with the node of its pod. A provisioner creates the volume when the annotation is set. */
const selectedNode = 'volume.kubernetes.io/selected-node';
/** Time limit of the binding of claims; the default of kube-scheduler. */
const timeoutMs = 600_000;

/** Requests volumes for the claims of assumed pods on their nodes, and waits until all are bound. */
export class ClaimBinding {
  readonly #options: ClaimBindingOptions;
  readonly #waiting = new Set<() => void>();
  #stopped = false;

  constructor(options: ClaimBindingOptions) {
    this.#options = options;
  }

  /** Keys of the claims of a pod that have no volume. */
  unbound({ namespace, requirements }: PodInfo): readonly string[] {
    const { claims } = this.#options.cluster;
    return requirements.claims
      .map(({ name }) => `${namespace}/${name}`)
      .filter((key) => claims.get(key)?.unbound !== undefined);
  }

  /** @throws Error when a claim is not bound in time, or cannot be bound on this node */
  async bind(pod: PodInfo, nodeName: string): Promise<void> {
    const { client, clock, cluster } = this.#options;
    const requested = new Map<string, string>();
    for (const key of this.unbound(pod)) {
      const claim = cluster.claims.get(key)?.unbound;
      const { name = '', uid } = claim?.metadata ?? {};
      const metadata = { uid, annotations: { [selectedNode]: nodeName } };
      const claims = client.resource(PersistentVolumeClaim).namespace(pod.namespace);
      const written = await claims.patch(name, 'merge', { metadata });
      requested.set(key, written.metadata?.resourceVersion ?? '');
    }
    const began = clock.monotonic();
    const observed = new Set<string>();
    await this.#until(() => {
      if (!cluster.isPlaced(pod.uid)) throw new Error('the pod was deleted');
      if (clock.monotonic() - began >= timeoutMs) throw new Error('timed out waiting for the condition');
      let isBound = true;
      for (const [key, version] of requested) {
        const claim = cluster.claims.get(key);
        if (claim === undefined) throw new Error(`persistentvolumeclaim ${key} was deleted`);
        if (claim.unbound === undefined) continue;
        isBound = false;
        const { annotations, resourceVersion } = claim.unbound.metadata ?? {};
        if (resourceVersion === version || annotations?.[selectedNode] === nodeName) observed.add(key);
        else if (observed.has(key))
          throw new Error(`no volume for persistentvolumeclaim ${key} on node ${nodeName}; another node is selected`);
      }
      return isBound;
    });
  }

  /** Checks the waiting pods again after a change of claims or pods. */
  changed(): void {
    for (const check of this.#waiting) check();
  }

  stop(): void {
    this.#stopped = true;
    this.changed();
  }

  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let cancel = () => {};
      const end = (settle: () => void) => {
        this.#waiting.delete(check);
        cancel();
        settle();
      };
      const check = () => {
        try {
          if (this.#stopped) throw new Error('the scheduler is stopping');
          if (condition()) end(resolve);
        } catch (error) {
          end(() => reject(error as Error));
        }
      };
      this.#waiting.add(check);
      cancel = this.#options.clock.after(timeoutMs, check);
      check();
    });
  }
}
