import { Backoff, Informer } from '@keelson/client';
import { controllerOf } from '@keelson/controller-kit';
import {
  type ApiClient,
  type KindDefinition,
  type KubeObject,
  type LabelSelectorSpec,
  labelSelectorOf,
  type ResourceClient,
  SelectorError,
} from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '@keelson/kinds';
import type { BudgetInfo, ClaimInfo, ClusterChange, ClusterState } from './cluster-state.ts';
import { type PodInfo, podInfoOf } from './pod-info.ts';

/** Returns an informer that others share; it is started and stopped by its owner. */
export type SharedInformerOf = <T extends KubeObject>(kind: KindDefinition<T>) => Informer<T> | undefined;

export interface ClusterFeedOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly informerOf?: SharedInformerOf | undefined;
  readonly cluster: ClusterState;
  readonly changed: (change: ClusterChange) => void;
  /** Called when a pod was created or changed. */
  readonly pod: (pod: PodInfo, before: PodInfo | undefined) => void;
  readonly podGone: (pod: PodInfo) => void;
}

interface Followed<K> {
  readonly set: (kept: K, key: string, before: K | undefined) => void;
  readonly deleted: (kept: K, key: string) => void;
}

/** A server may lack PodDisruptionBudgets; preemption then considers none. */
const budgetResource = { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' };

/** Updates the state of the cluster with what informers observe. */
export class ClusterFeed {
  readonly #options: ClusterFeedOptions;
  readonly #own: { start(): Promise<void>; stop(): Promise<void> }[] = [];
  readonly #shared: { waitForSync(): Promise<boolean> }[] = [];
  readonly #unfollow: (() => void)[] = [];
  readonly #stop = new AbortController();

  constructor(options: ClusterFeedOptions) {
    this.#options = options;
  }

  /** Resolves when everything that exists is in the state. */
  async start(): Promise<void> {
    const { cluster } = this.#options;
    this.#follow(Namespace, ({ metadata = {} }) => metadata.labels ?? {}, {
      set: (labels, name, before) => {
        if (before !== undefined && JSON.stringify(labels) === JSON.stringify(before)) return;
        cluster.setNamespace(name, labels);
        this.#options.changed('NamespaceChanged');
      },
      deleted: (_labels, name) => cluster.setNamespace(name, undefined),
    });
    this.#follow(Node, withoutManagedFields, {
      set: (node, _key, before) => this.#setNode(node, before),
      deleted: (_node, name) => cluster.setNode(name, undefined),
    });
    this.#follow(Pod, (pod) => podInfoOf(withoutManagedFields(pod)), {
      set: (pod, _key, before) => {
        const isSame = before?.uid === pod.uid;
        if (before !== undefined && !isSame) this.#options.podGone(before);
        this.#options.pod(pod, isSame ? before : undefined);
      },
      deleted: (pod) => this.#options.podGone(pod),
    });
    const served = await this.#served();
    if (served.has('/persistentvolumeclaims')) this.#followClaims();
    if (served.has('/persistentvolumes')) this.#followVolumes();
    if (served.has('storage.k8s.io/storageclasses')) this.#followStorageClasses();
    if (served.has(`policy/${budgetResource.resource}`)) this.#followBudgets();
    if (this.#stop.signal.aborted) return;
    await Promise.all(this.#own.map((informer) => informer.start()));
    await Promise.all(this.#shared.map((informer) => informer.waitForSync()));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    for (const unfollow of this.#unfollow) unfollow();
    await Promise.all(this.#own.map((informer) => informer.stop()));
  }

  /** The resources of the server, as `group/resource`. Repeats until the server answers. */
  async #served(): Promise<ReadonlySet<string>> {
    const { client, clock, logger } = this.#options;
    const backoff = new Backoff(clock);
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        return new Set((await client.discover()).map(({ group, resource }) => `${group}/${resource}`));
      } catch (err) {
        logger.warn('resources of the server cannot be read, will retry', { component: 'scheduler', err });
        await backoff.wait(signal);
      }
    }
    return new Set();
  }

  #follow<T extends KubeObject, K>(kind: KindDefinition<T>, keep: (object: T) => K, followed: Followed<K>): void {
    const shared = this.#options.informerOf?.(kind);
    if (shared === undefined) {
      this.#followOwn(this.#options.client.resource(kind), keep, followed);
      return;
    }
    this.#shared.push(shared);
    this.#unfollow.push(
      shared.addHandlers({
        added: (object, key) => followed.set(keep(object), key, undefined),
        updated: (object, before, key) => followed.set(keep(object), key, keep(before)),
        deleted: (object, key) => followed.deleted(keep(object), key),
      }),
    );
  }

  #followOwn<T extends KubeObject, K>(client: ResourceClient<T>, keep: (object: T) => K, followed: Followed<K>): void {
    const { clock, logger } = this.#options;
    const handlers = {
      added: (kept: K, key: string) => followed.set(kept, key, undefined),
      updated: (kept: K, before: K, key: string) => followed.set(kept, key, before),
      deleted: followed.deleted,
    };
    this.#own.push(new Informer<T, K>({ client, keep, handlers, clock, logger }));
  }

  #setNode(node: Node, before: Node | undefined): void {
    const { cluster, changed } = this.#options;
    const name = node.metadata?.name ?? '';
    const rules = (of: Node) => JSON.stringify([of.metadata?.labels, of.spec, of.status?.allocatable]);
    const isNew = before === undefined || cluster.node(name) === undefined;
    const isChanged = !isNew && rules(node) !== rules(before);
    const images = (of: Node | undefined) => JSON.stringify(of?.status?.images?.map(({ names }) => names));
    // The heartbeats of a node change only its conditions, which the scheduler does not use.
    if (isNew || isChanged || images(node) !== images(before)) cluster.setNode(name, node);
    if (isNew) changed('NodeAdded');
    else if (isChanged) changed('NodeChanged');
  }

  #followClaims(): void {
    const { cluster, changed } = this.#options;
    this.#follow(PersistentVolumeClaim, claimInfoOf, {
      set: (claim, key) => {
        cluster.claims.set(key, claim);
        changed('ClaimChanged');
      },
      deleted: (_claim, key) => cluster.claims.delete(key),
    });
  }

  #followVolumes(): void {
    const { cluster, changed } = this.#options;
    this.#follow(PersistentVolume, withoutManagedFields, {
      set: (volume, name) => {
        cluster.volumes.set(name, volume);
        changed('ClaimChanged');
      },
      deleted: (_volume, name) => cluster.volumes.delete(name),
    });
  }

  #followStorageClasses(): void {
    const { cluster, changed } = this.#options;
    this.#follow(StorageClass, withoutManagedFields, {
      set: (storageClass, name) => {
        cluster.storageClasses.set(name, storageClass);
        changed('ClaimChanged');
      },
      deleted: (_storageClass, name) => cluster.storageClasses.delete(name),
    });
  }

  #followBudgets(): void {
    const { client, cluster } = this.#options;
    this.#followOwn(client.dynamic(budgetResource), budgetInfoOf, {
      set: (budget, key) => cluster.budgets.set(key, budget),
      deleted: (_budget, key) => cluster.budgets.delete(key),
    });
  }
}

/** A copy without the fields that only the server uses. Objects of shared informers must not be modified. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _dropped, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function claimInfoOf(claim: PersistentVolumeClaim): ClaimInfo {
  const { spec, status } = claim;
  const owner = controllerOf(claim);
  return {
    phase: status?.phase ?? 'Pending',
    volumeName: spec.volumeName ?? '',
    deleting: claim.metadata?.deletionTimestamp !== undefined,
    exclusive: spec.accessModes?.includes('ReadWriteOncePod') === true,
    podUid: owner?.kind === 'Pod' ? owner.uid : undefined,
    ...(spec.volumeName && status?.phase === 'Bound' ? {} : { unbound: withoutManagedFields(claim) }),
  };
}

function budgetInfoOf(budget: KubeObject): BudgetInfo {
  const { spec, status } = budget as {
    spec?: { selector?: LabelSelectorSpec };
    status?: { disruptionsAllowed?: number; disruptedPods?: Readonly<Record<string, unknown>> };
  };
  return {
    namespace: budget.metadata?.namespace ?? '',
    matches: budgetSelector(spec?.selector),
    allowed: status?.disruptionsAllowed ?? 0,
    disrupted: new Set(Object.keys(status?.disruptedPods ?? {})),
  };
}

/** A budget with a missing, empty or invalid selector protects nothing. */
function budgetSelector(spec: LabelSelectorSpec | undefined): BudgetInfo['matches'] {
  try {
    const selector = labelSelectorOf(spec);
    return selector.empty ? () => false : (labels) => selector.matches(labels);
  } catch (error) {
    if (error instanceof SelectorError) return () => false;
    throw error;
  }
}
