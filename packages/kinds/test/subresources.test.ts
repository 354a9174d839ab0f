import {
  internalContext,
  isStatusError,
  type KindDefinition,
  type KubeObject,
  type ParentAccess,
  type StatusError,
  type SubresourceDefinition,
} from '@keelson/core';
import { decoderOf } from '@keelson/core/internal';
import test, { type ExecutionContext } from 'ava';
import { Deployment, ExtensionsV1beta1Deployment, ExtensionsV1beta1ReplicaSet, Pod, ReplicaSet } from '../src/index.ts';
import { podManifest, workloadManifest } from './helpers/manifests.ts';
import { create, now } from './helpers/writes.ts';

type Options = Parameters<ParentAccess['update']>[1];

/** A parent that lives in memory and remembers how it was reached. */
class MemoryParent implements ParentAccess {
  readonly namespace = 'default';
  readonly name: string;
  readonly updates: Options[] = [];
  readonly deletes: Parameters<ParentAccess['delete']>[0][] = [];
  object: KubeObject;

  constructor(object: KubeObject) {
    this.object = object;
    this.name = object.metadata?.name ?? '';
  }

  async get(): Promise<KubeObject> {
    return this.object;
  }

  async update(change: (parent: KubeObject) => void, options?: Options): Promise<KubeObject> {
    const copy = structuredClone(this.object);
    change(copy);
    this.updates.push(options);
    this.object = copy;
    return copy;
  }

  async delete(options: Parameters<ParentAccess['delete']>[0]): Promise<void> {
    this.deletes.push(options);
  }
}

function find<T extends SubresourceDefinition['type']>(kind: KindDefinition, type: T, name: string) {
  const found = kind.subresources.find((subresource) => subresource.name === name);
  if (found?.type !== type) throw new Error(`${kind.kind} has no ${type} ${name}`);
  return found as Extract<SubresourceDefinition, { type: T }>;
}

async function run(kind: KindDefinition, name: string, parent: ParentAccess, body: unknown, dryRun = false) {
  const action = find(kind, 'action', name);
  const { value, errors } = decoderOf(action.schema)(body);
  if (errors.length > 0) throw new Error(JSON.stringify(errors));
  return action.run({ context: internalContext(), parent, body: value as KubeObject, dryRun, now });
}

async function refusal(t: ExecutionContext, attempt: Promise<unknown>): Promise<StatusError> {
  const error = await t.throwsAsync(attempt);
  if (!isStatusError(error)) throw error;
  return error;
}

const pod = (spec: Record<string, unknown> = {}) => create(Pod, podManifest(spec)).object;

test('a binding assigns the pod to a node, merges annotations and sets the condition PodScheduled', async (t) => {
  const parent = new MemoryParent(pod());
  const answer = await run(Pod, 'binding', parent, {
    metadata: { name: 'p', uid: 'u', annotations: { a: 'b' } },
    target: { kind: 'Node', name: 'n1' },
  });
  t.is(answer.code, 201);
  t.like(answer.object, { kind: 'Status', status: 'Success' });
  const bound = parent.object as Pod;
  t.is(bound.spec.nodeName, 'n1');
  t.deepEqual(bound.metadata?.annotations, { a: 'b' });
  t.deepEqual(bound.status?.conditions, [
    { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-02T12:00:00Z' },
  ]);
  t.deepEqual(parent.updates, [{ as: 'raw', dryRun: false, uid: 'u' }]);
});

for (const [title, spec, metadata] of [
  ['is assigned already', { nodeName: 'n' }, {}],
  ['is being deleted', {}, { deletionTimestamp: '2026-01-02T12:00:00Z' }],
  ['is gated', { schedulingGates: [{ name: 'x.io/g' }] }, {}],
] as const) {
  test(`a binding of a pod that ${title} is a conflict`, async (t) => {
    const object = pod(spec);
    Object.assign(object.metadata!, metadata);
    const { name } = object.metadata!;
    const error = await refusal(
      t,
      run(Pod, 'binding', new MemoryParent(object), { metadata: { name }, target: { name: 'n1' } }),
    );
    t.is(error.code, 409);
    t.is(error.status.details?.kind, 'pods/binding');
  });
}

test('a binding requires a node', async (t) => {
  const error = await refusal(
    t,
    run(Pod, 'binding', new MemoryParent(pod()), { metadata: { name: 'p' }, target: { kind: 'Pod' } }),
  );
  t.is(error.code, 422);
  t.deepEqual(
    error.status.details?.causes?.map(({ field }) => field),
    ['target.kind', 'target.name'],
  );
});

test('an eviction deletes the pod with the given options', async (t) => {
  const parent = new MemoryParent(pod());
  const answer = await run(Pod, 'eviction', parent, {
    metadata: { name: 'p' },
    deleteOptions: { gracePeriodSeconds: 0, preconditions: { uid: 'u', resourceVersion: '7' }, dryRun: ['All'] },
  });
  t.is(answer.code, 201);
  t.deepEqual(parent.deletes, [{ dryRun: true, gracePeriodSeconds: 0, uid: 'u', resourceVersion: '7' }]);
});

test('the body of a binding or an eviction has the name of the pod', async (t) => {
  const parent = new MemoryParent(pod());
  for (const metadata of [{ name: 'other' }, {}, undefined]) {
    const body = metadata && { metadata };
    const refused = await refusal(t, run(Pod, 'eviction', parent, { ...body }));
    t.deepEqual([refused.code, refused.message], [400, 'name in URL does not match name in Eviction object']);
    const unbound = await refusal(t, run(Pod, 'binding', parent, { ...body, target: { name: 'n1' } }));
    t.deepEqual([unbound.code, unbound.message], [400, 'name in URL does not match name in Binding object']);
  }
  t.deepEqual([parent.deletes, parent.updates], [[], []]);
});

const old = (spec: Record<string, unknown> = {}) =>
  create(ExtensionsV1beta1Deployment, workloadManifest('extensions/v1beta1', 'Deployment', spec)).object;

test('a rollback stores revision and annotations, and the response is the rollback itself', async (t) => {
  const parent = new MemoryParent(old());
  const body = { name: 'web', updatedAnnotations: { a: 'b' }, rollbackTo: { revision: 2 } };
  const answer = await run(ExtensionsV1beta1Deployment, 'rollback', parent, body);
  t.is(answer.code, 201);
  t.deepEqual(answer.object, {
    kind: 'DeploymentRollback',
    apiVersion: 'extensions/v1beta1',
    ...body,
  } as unknown as KubeObject);
  const noted = parent.object as ExtensionsV1beta1Deployment;
  t.deepEqual(noted.spec.rollbackTo, { revision: 2 });
  t.is(noted.metadata?.annotations?.['a'], 'b');
  t.deepEqual(parent.updates, [{ as: 'spec', dryRun: false }]);
});

test('a rollback to revision 0 is stored as a rollback to the previous revision', async (t) => {
  const parent = new MemoryParent(old());
  await run(ExtensionsV1beta1Deployment, 'rollback', parent, { name: 'web', rollbackTo: { revision: 0 } });
  t.deepEqual((parent.object as ExtensionsV1beta1Deployment).spec.rollbackTo, {});
});

for (const [title, body, code] of [
  ['without a name', { name: '', rollbackTo: {} }, 422],
  ['to a negative revision', { name: 'web', rollbackTo: { revision: -1 } }, 422],
  ['of another deployment', { name: 'other', rollbackTo: {} }, 400],
] as const) {
  test(`a rollback ${title} is rejected`, async (t) => {
    const parent = new MemoryParent(old());
    const error = await refusal(t, run(ExtensionsV1beta1Deployment, 'rollback', parent, body));
    t.is(error.code, code);
    t.is(parent.updates.length, 0);
  });
}

const identity = {
  name: 'web',
  namespace: 'default',
  uid: 'u',
  resourceVersion: '5',
  creationTimestamp: '2026-01-02T12:00:00Z',
};

test('scale of apps/v1 contains the selector as a text', (t) => {
  for (const kind of [Deployment, ReplicaSet] as readonly KindDefinition[]) {
    const selector = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'app', operator: 'Exists' }] };
    const { object } = create(kind, workloadManifest('apps/v1', kind.kind, { replicas: 3, selector }));
    Object.assign(object.metadata, identity, { labels: { hidden: 'yes' } });
    object.status = { replicas: 2 };
    t.deepEqual(find(kind, 'projection', 'scale').read(object), {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: identity,
      spec: { replicas: 3 },
      status: { replicas: 2, selector: 'app,app=web' },
    });
  }
});

test('scale of extensions/v1beta1 contains the selector as a map if possible', (t) => {
  for (const kind of [ExtensionsV1beta1Deployment, ExtensionsV1beta1ReplicaSet] as readonly KindDefinition[]) {
    const scale = find(kind, 'projection', 'scale');
    const { object } = create(kind, workloadManifest('extensions/v1beta1', kind.kind));
    t.like(scale.read(object), {
      apiVersion: 'extensions/v1beta1',
      status: { replicas: 0, selector: { app: 'web' }, targetSelector: 'app=web' },
    });
    object.spec.selector = {
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'b', operator: 'In', values: ['1', '2'] }],
    };
    const { status } = scale.read(object) as { status?: Record<string, unknown> };
    t.deepEqual(status, { replicas: 0, targetSelector: 'app=web,b in (1,2)' });
  }
});

test('a scale update changes only replicas; a negative number is rejected as an error of Scale', (t) => {
  const scale = find(Deployment, 'projection', 'scale');
  const { object } = create(Deployment, workloadManifest('apps/v1', 'Deployment'));
  const before = structuredClone(object);
  scale.write(object, { metadata: { labels: { a: 'b' } }, spec: { replicas: 0 } });
  t.deepEqual(object, { ...before, spec: { ...before.spec, replicas: 0 } });
  const error = t.throws(() => scale.write(object, { spec: { replicas: -1 } }));
  if (!isStatusError(error)) throw error;
  t.is(error.code, 422);
  t.like(error.status.details, { kind: 'Scale', group: 'autoscaling', causes: [{ field: 'spec.replicas' }] });
});
