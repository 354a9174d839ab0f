import { createInProcessClient } from '@keelson/client';
import type { ApiClient, ResourceClient } from '@keelson/core';
import {
  createCachedStorages,
  createContinueTokens,
  createResourceRegistry,
  namespaceLifecycle,
} from '@keelson/core/internal';
import { FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { builtinKinds, type coreV1, Event, Namespace, Node, Pod, type PodCondition } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { until } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { Scheduler, type SchedulerOptions } from '../../src/index.ts';

/** A control plane in this process with a scheduler. Time moves by `clock.advance` only. */
export interface TestCluster {
  readonly client: ApiClient;
  readonly pods: ResourceClient<Pod>;
  readonly nodes: ResourceClient<Node>;
  readonly clock: FakeClock;
  readonly options: SchedulerOptions;
  startScheduler(options?: Partial<SchedulerOptions>): Promise<Scheduler>;
  addNode(name: string, node?: NodeParts): Promise<Node>;
  addPod(name: string, pod?: PodParts): Promise<Pod>;
  /** Waits until the pod is assigned; returns the node. */
  assigned(name: string): Promise<string>;
  /** Waits until the pod was rejected; returns the condition. */
  rejected(name: string, accept?: (condition: PodCondition) => boolean): Promise<PodCondition>;
  /** Waits for an event about a pod; returns its message. */
  event(name: string, reason: string): Promise<string>;
}

export interface NodeParts {
  readonly labels?: Record<string, string>;
  readonly spec?: coreV1.NodeSpec;
  readonly allocatable?: Record<string, string>;
  readonly images?: coreV1.ContainerImage[];
}

export interface PodParts {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly requests?: Record<string, string>;
  readonly ports?: coreV1.ContainerPort[];
  readonly finalizers?: string[];
  readonly ownerUid?: string;
  readonly spec?: Partial<coreV1.PodSpec>;
}

export const nodeOf = (name: string, { labels = {}, spec = {}, allocatable = {}, images }: NodeParts = {}): Node => ({
  metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
  spec,
  status: {
    allocatable: { cpu: '4', memory: '8Gi', pods: '110', ...allocatable },
    ...(images && { images }),
  },
});

export const podOf = (name: string, parts: PodParts = {}): Pod => {
  const { namespace = 'default', labels, requests, ports, spec, finalizers, ownerUid } = parts;
  const container = {
    name: 'main',
    image: 'app:1',
    ...(requests && { resources: { requests } }),
    ...(ports && { ports }),
  };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'owner', uid: ownerUid ?? '', controller: true };
  return {
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      ...(finalizers && { finalizers }),
      ...(ownerUid !== undefined && { ownerReferences: [owner] }),
    },
    spec: { containers: [container], ...spec },
  };
};

export async function startTestCluster(t: ExecutionContext): Promise<TestCluster> {
  const clock = new FakeClock();
  const store = new MemoryStore({ clock });
  await store.ready();
  const storages = createCachedStorages({ store, clock });
  await storages.start();
  t.teardown(async () => {
    await storages.stop();
    await store.close();
  });
  const registry = createResourceRegistry({
    storages,
    tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
    clock,
    logger: silentLogger,
    admission: [namespaceLifecycle({ kind: Namespace, storage: storages.forKind(Namespace) })],
    kinds: builtinKinds,
  });
  const client = createInProcessClient(registry, { clock });
  await client.resource(Namespace).create({ metadata: { name: 'default' } });
  const options = { client, clock, logger: silentLogger, metrics: noMetrics };
  const pods = client.resource(Pod).namespace('default');
  const nodes = client.resource(Node);
  return {
    client,
    pods,
    nodes,
    clock,
    options,
    startScheduler: async (more = {}) => {
      const scheduler = new Scheduler({ ...options, ...more });
      t.teardown(() => scheduler.stop());
      await scheduler.start();
      return scheduler;
    },
    addNode: (name, parts) => nodes.create(nodeOf(name, parts)),
    addPod: (name, parts = {}) =>
      client
        .resource(Pod)
        .namespace(parts.namespace ?? 'default')
        .create(podOf(name, parts)),
    assigned: (name) => until(async () => (await pods.get(name)).spec.nodeName),
    rejected: (name, accept = () => true) =>
      until(async () => {
        const { conditions = [] } = (await pods.get(name)).status ?? {};
        return conditions.find((found) => found.type === 'PodScheduled' && found.status === 'False' && accept(found));
      }),
    event: (name, reason) =>
      until(async () => {
        const { items } = await client.resource(Event).namespace('default').list();
        return items.find((found) => found.involvedObject.name === name && found.reason === reason)?.message;
      }),
  };
}
