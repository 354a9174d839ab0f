import { type ApiClient, type KubeObject, statusErrors } from '@keelson/core';
import { type appsV1, type Deployment, Pod, type ReplicaSet } from '@keelson/kinds';
import { Rollout } from '../../src/deployment/rollout.ts';
import { runOverObjects } from './run-over-objects.ts';

const [desired, most] = ['desired-replicas', 'max-replicas'].map((name) => `deployment.kubernetes.io/${name}`) as [
  string,
  string,
];
const template = (image: string) => ({ metadata: { labels: {} }, spec: { containers: [{ name: 'c', image }] } });

export interface SetOptions {
  readonly image?: string;
  readonly available?: number;
  readonly recorded?: number;
  readonly max?: number;
  readonly status?: appsV1.ReplicaSetStatus;
}

/** A replica set, by default of an old template with all pods available. Sets are as old as each other. */
export function replicaSet(name: string, replicas: number, options: SetOptions = {}): ReplicaSet {
  const { image = `old-${name}`, available = replicas, recorded, max, status } = options;
  return {
    metadata: {
      ...{ name, namespace: 'default', uid: name, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
      annotations: {
        ...(recorded === undefined ? {} : { [desired]: String(recorded) }),
        ...(max === undefined ? {} : { [most]: String(max) }),
      },
    },
    spec: { replicas, selector: {}, template: template(image) },
    status: { replicas, readyReplicas: available, availableReplicas: available, observedGeneration: 1, ...status },
  };
}

export function deployment(spec: Partial<Deployment['spec']> = {}, more: Partial<Deployment> = {}): Deployment {
  return {
    metadata: { name: 'd', namespace: 'default', uid: 'd', generation: 2 },
    spec: { replicas: 10, selector: {}, template: template('new'), ...spec },
    ...more,
  };
}

export const rolling = (surge: number | string, unavailable: number | string) => ({
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable } },
});

/**
 * A rollout whose writes are recorded.
 *
 * @param existing the object that has the name of a new replica set
 */
export function rolloutOf(
  object: Deployment,
  sets: readonly ReplicaSet[],
  pods: readonly Pod[] = [],
  existing?: ReplicaSet,
) {
  const sizes = new Map<string, number | undefined>();
  const statuses: appsV1.DeploymentStatus[] = [];
  const updates: KubeObject[] = [];
  const create = (set: ReplicaSet) => {
    if (existing === undefined) return { ...set, metadata: { ...set.metadata, uid: 'created', generation: 1 } };
    throw statusErrors.alreadyExists({ group: 'apps', resource: 'replicasets' } as never, set.metadata?.name ?? '');
  };
  const objects = {
    create: async (set: ReplicaSet) => create(set),
    get: async () => existing,
    update: async (set: ReplicaSet) => {
      updates.push(set);
      sizes.set(set.metadata?.name ?? '', set.spec.replicas);
      return set;
    },
    updateSubresource: async (_name: string, _subresource: string, body: Deployment) => {
      statuses.push(body.status ?? {});
      return body;
    },
  };
  const client = { resource: () => ({ namespace: () => objects }) } as unknown as ApiClient;
  const run = runOverObjects([[Pod, pods]], client);
  const rollout = new Rollout(object, sets, run);
  return {
    run,
    rollout,
    statuses,
    updates,
    sizes: () => rollout.all.map(({ spec }) => spec.replicas).join(),
    written: () => [...sizes.keys()].join(),
  };
}
