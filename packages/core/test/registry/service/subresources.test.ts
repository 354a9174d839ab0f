import { type AdmissionPlugin, internalContext, type KubeObject } from '@keelson/core';
import { test } from './both-forms.ts';
import { Gadget, Namespace } from './fixtures.ts';
import { createPlane, failure, json, lenient } from './harness.ts';

async function withGadget(t: Parameters<typeof createPlane>[0]) {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  const created = await gadgets.create({ metadata: { name: 'a' }, spec: { replicas: 2 } } as never);
  return { plane, gadgets, created };
}

const scaleTo = (replicas: number, metadata: Record<string, unknown> = {}): KubeObject =>
  ({ metadata: { name: 'a', ...metadata }, spec: { replicas } }) as KubeObject;

test('a projection is read, replaced and patched, and only its part of the parent changes', async (t) => {
  const { gadgets, created } = await withGadget(t);
  const scale = await gadgets.getSubresource('a', 'scale');
  t.deepEqual(scale, {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name: 'a',
      namespace: 'n',
      uid: created.metadata?.uid,
      resourceVersion: created.metadata?.resourceVersion,
    },
    spec: { replicas: 2 },
  } as never);
  t.like(await gadgets.updateSubresource('a', 'scale', scaleTo(5)), { kind: 'Scale', spec: { replicas: 5 } } as never);
  for (const [type, patch, replicas] of [
    ['merge', { spec: { replicas: 6 } }, 6],
    ['strategic', { spec: { replicas: 7 } }, 7],
    ['json', [{ op: 'replace', path: '/spec/replicas', value: 8 }], 8],
  ] as const) {
    t.like(await gadgets.patchSubresource('a', 'scale', type, patch), { spec: { replicas } } as never);
  }
  t.like(await gadgets.get('a'), { spec: { replicas: 8 }, metadata: { generation: 5 } });
});

test('a projection rejects a wrong version, name, kind or value', async (t) => {
  const { plane, gadgets, created } = await withGadget(t);
  const put = (body: KubeObject) => failure(() => gadgets.updateSubresource('a', 'scale', body));
  t.like(await put(scaleTo(3, { resourceVersion: '1' })), { code: 409, details: { kind: 'gadgets' } });
  t.is((await put(scaleTo(3, { uid: 'other' }))).code, 409);
  t.is((await put(scaleTo(3, { name: 'b' }))).code, 400);
  t.is((await put({ ...scaleTo(3), kind: 'Gadget' })).code, 400);
  const negative = await put(scaleTo(-1));
  t.like(negative, { code: 422, details: { kind: 'Scale' } });
  t.is(negative.details?.causes?.[0]?.field, 'spec.replicas');
  t.is((await failure(() => gadgets.patchSubresource('a', 'scale', 'merge', { spec: { replicas: 'x' } }))).code, 422);
  t.is(
    (await failure(() => gadgets.patchSubresource('a', 'scale', 'merge', { metadata: { resourceVersion: '1' } }))).code,
    409,
  );
  t.like(await failure(() => gadgets.getSubresource('ghost', 'scale')), {
    code: 404,
    details: { kind: 'gadgets', name: 'ghost' },
  });
  t.is((await failure(() => gadgets.updateSubresource('ghost', 'scale', scaleTo(1, { name: 'ghost' })))).code, 404);
  t.deepEqual(await gadgets.get('a'), created);
  const fitting = await gadgets.updateSubresource('a', 'scale', scaleTo(3, { ...created.metadata }));
  t.like(fitting, { spec: { replicas: 3 } } as never);
  const dry = await gadgets.updateSubresource('a', 'scale', scaleTo(9), { dryRun: true });
  t.like(dry, { spec: { replicas: 9 } } as never);
  t.is((await gadgets.get('a')).spec.replicas, 3);
  t.is(
    (
      await plane
        .service(Gadget)
        .getSubresource(internalContext(), { namespace: 'n', name: 'a' }, Gadget.subresources[1] as never)
    ).code,
    200,
  );
});

/** As a custom resource: status writes keep the metadata, and a PUT states which version it replaces. */
const Guarded = Object.freeze({
  ...Gadget,
  strategy: { ...Gadget.strategy, statusKeepsMetadata: true, allowUnconditionalUpdate: false },
}) as typeof Gadget;

async function withGuarded(t: Parameters<typeof createPlane>[0], admission: readonly AdmissionPlugin[] = []) {
  const plane = await createPlane(t, { kinds: [Guarded], admission });
  const guarded = plane.client.resource(Guarded).namespace('n');
  const metadata = { name: 'a', labels: { a: 'b' }, finalizers: ['x.y/old'] };
  return { guarded, created: await guarded.create({ metadata, spec: { replicas: 2 } } as never) };
}

test('a status write keeps the metadata where the kind requires it, also what a mutating webhook changes', async (t) => {
  const mutating: AdmissionPlugin = {
    name: 'mutating',
    mutate: ({ subresource, object }) => {
      if (subresource === 'status' && object?.metadata) object.metadata.finalizers = ['x.y/webhook'];
    },
  };
  const { guarded, created } = await withGuarded(t, [mutating]);
  const owner = { apiVersion: 'v1', kind: 'Lock', name: 'l', uid: 'u' };
  const theirs = { labels: { c: 'd' }, annotations: { e: 'f' }, finalizers: ['x.y/new'], ownerReferences: [owner] };
  const changed = { ...created, metadata: { ...created.metadata, ...theirs }, status: { phase: 'one' } };
  const put = await guarded.updateSubresource('a', 'status', changed as never);
  const withoutVersion = ({ metadata }: KubeObject) => ({ ...metadata, resourceVersion: undefined });
  t.deepEqual(withoutVersion(put), withoutVersion(created));
  const patched = await guarded.patchSubresource('a', 'status', 'merge', {
    metadata: { ...theirs, generateName: 'g-' },
    status: { phase: 'two' },
  });
  t.deepEqual(withoutVersion(patched), withoutVersion(created));
  t.like(await guarded.get('a'), { status: { phase: 'two' } });
  const stale = { ...changed, metadata: { ...changed.metadata, uid: 'other' } };
  t.is((await failure(() => guarded.updateSubresource('a', 'status', stale as never))).code, 409);
});

test('an apply to the status owns its fields where status writes keep the metadata', async (t) => {
  const { guarded } = await withGuarded(t);
  const { apiVersion, kind } = Guarded;
  const applied = await guarded.patchSubresource(
    'a',
    'status',
    'apply',
    { apiVersion, kind, metadata: { name: 'a' }, status: { phase: 'one' } },
    { fieldManager: 'm' },
  );
  t.deepEqual(
    applied.metadata?.managedFields?.filter(({ manager }) => manager === 'm').map(({ fieldsV1 }) => fieldsV1),
    [{ 'f:status': { 'f:phase': {} } }] as never,
  );
});

test('a projection without resourceVersion is written even where the kind requires one, with another one it is 409', async (t) => {
  const { guarded } = await withGuarded(t);
  t.like(await guarded.updateSubresource('a', 'scale', scaleTo(5)), { spec: { replicas: 5 } } as never);
  const stale = await failure(() => guarded.updateSubresource('a', 'scale', scaleTo(6, { resourceVersion: '1' })));
  t.is(stale.code, 409);
  t.is((await guarded.get('a')).spec.replicas, 5);
});

test('concurrent scale patches are all applied to the current parent object', async (t) => {
  const { gadgets } = await withGadget(t);
  await Promise.all([
    ...Array.from({ length: 20 }, (_, i) =>
      gadgets.patchSubresource('a', 'scale', 'merge', { spec: { replicas: i + 10 } }),
    ),
    ...Array.from({ length: 20 }, (_, i) => gadgets.patch('a', 'merge', { spec: { settings: { [`k${i}`]: 'v' } } })),
  ]);
  const final = await gadgets.get('a');
  t.is(Object.keys(final.spec.settings ?? {}).length, 20);
  t.true((final.spec.replicas ?? 0) >= 10);
});

test('an action changes its parent through the ordinary path', async (t) => {
  const { plane, gadgets } = await withGadget(t);
  const paint = (body: KubeObject, name = 'a') => gadgets.createSubresource(name, 'paint', body);
  t.like(await paint({ colour: 'blue' } as KubeObject), {
    kind: 'Gadget',
    spec: { colour: 'blue' },
    metadata: { generation: 2 },
  } as never);
  t.like(await failure(() => paint({} as KubeObject)), { code: 422, details: { kind: 'Order' } });
  t.is((await failure(() => paint({ colour: 'mauve' } as KubeObject))).code, 422);
  t.is((await failure(() => paint({ colour: 'red' } as KubeObject, 'ghost'))).code, 404);
  t.is((await failure(() => paint({ colour: 'red', metadata: { namespace: 'm' } } as KubeObject))).code, 400);
  const before = await plane.store.currentRevision();
  await gadgets.createSubresource('a', 'paint', { colour: 'red' } as KubeObject, { dryRun: true });
  t.is(await plane.store.currentRevision(), before);
  const code = (
    await plane
      .service(Gadget)
      .createSubresource(
        internalContext(),
        { namespace: 'n', name: 'a' },
        Gadget.subresources[2] as never,
        json({ colour: 'red' }),
        lenient,
      )
  ).code;
  t.is(code, 201);
});

test('an action that writes raw raises no generation', async (t) => {
  const { gadgets } = await withGadget(t);
  const assigned = await gadgets.createSubresource('a', 'assignment', { colour: 'blue' } as KubeObject);
  t.like(assigned, { spec: { colour: 'blue' }, metadata: { generation: 1 } } as never);
});

test('operations that a subresource does not have are 405, subresources that do not exist 404', async (t) => {
  const { client } = await createPlane(t);
  const gadgets = client.resource(Gadget).namespace('n');
  await gadgets.create({ metadata: { name: 'a' } } as never);
  const namespaces = client.resource(Namespace);
  await namespaces.create({ metadata: { name: 'x' } } as never);
  t.like(await failure(() => gadgets.getSubresource('a', 'paint')), { code: 405, reason: 'MethodNotAllowed' });
  t.is((await failure(() => gadgets.updateSubresource('a', 'paint', {}))).code, 405);
  t.is((await failure(() => gadgets.createSubresource('a', 'scale', {}))).code, 405);
  t.is((await failure(() => namespaces.patchSubresource('x', 'finalize', 'merge', {}))).code, 405);
  t.is((await failure(() => namespaces.getSubresource('x', 'finalize'))).code, 405);
  t.like(await failure(() => gadgets.getSubresource('a', 'ghost')), { code: 404, reason: 'NotFound' });
});

test('finalize replaces only spec.finalizers, and removing the last one removes a namespace in deletion', async (t) => {
  const { client } = await createPlane(t);
  const namespaces = client.resource(Namespace);
  const created = await namespaces.create({ metadata: { name: 'x' } } as never);
  const widened = (await namespaces.updateSubresource('x', 'finalize', {
    ...created,
    metadata: { ...created.metadata, labels: { changed: 'no' } },
    spec: { finalizers: ['kubernetes', 'example.com/more'] },
  } as KubeObject)) as typeof created;
  t.deepEqual(widened.spec.finalizers, ['kubernetes', 'example.com/more']);
  t.is(widened.metadata?.labels?.['changed'], undefined);
  t.is(
    (await failure(() => namespaces.updateSubresource('x', 'finalize', created))).code,
    409,
    'a stale version is refused',
  );
  t.deepEqual(
    (await namespaces.update({ metadata: { name: 'x' }, spec: { finalizers: [] } } as never)).spec.finalizers,
    widened.spec.finalizers,
  );
  await namespaces.delete('x');
  const one = await namespaces.updateSubresource('x', 'finalize', {
    metadata: { name: 'x' },
    spec: { finalizers: ['kubernetes'] },
  } as KubeObject);
  t.truthy(one.metadata?.deletionTimestamp);
  const last = await namespaces.updateSubresource('x', 'finalize', {
    metadata: { name: 'x' },
    spec: { finalizers: [] },
  } as KubeObject);
  t.like(last, { kind: 'Namespace', status: { phase: 'Terminating' } } as never);
  t.is((await failure(() => namespaces.get('x'))).code, 404);
});
