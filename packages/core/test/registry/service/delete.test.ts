import {
  type AdmissionPlugin,
  internalContext,
  type KubeList,
  type KubeObject,
  type Status,
  statusErrors,
} from '@keelson/core';
import { test } from './both-forms.ts';
import { Cart, Gadget, Lock, Namespace, OldCart, Open, Ticket } from './fixtures.ts';
import { createPlane, everything, failure, storedCount } from './harness.ts';

async function withGadget(t: Parameters<typeof createPlane>[0], metadata: KubeObject['metadata'] = {}, spec = {}) {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  const created = await gadgets.create({ metadata: { name: 'a', ...metadata }, spec } as never);
  const remove = (parameters = {}) =>
    plane.service(Gadget).delete(internalContext(), { namespace: 'n', name: 'a' }, { dryRun: false, ...parameters });
  return { plane, gadgets, created, remove };
}

test('removed at once: a Status with the uid, and without a code', async (t) => {
  const { gadgets, created, remove } = await withGadget(t);
  t.deepEqual(await remove(), {
    object: {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', group: 'toys.example.com', kind: 'gadgets', uid: created.metadata?.uid ?? '' },
    },
    code: 200,
  });
  t.like(await failure(() => gadgets.delete('a')), { code: 404, details: { name: 'a' } });
  const tickets = (await createPlane(t)).client.resource(Ticket).namespace('n');
  await tickets.create({ metadata: { name: 'a' } } as never);
  t.false('group' in ((await tickets.delete('a')) as Status).details!);
});

test('kinds that return objects answer with the last state and the revision of the deletion', async (t) => {
  const { client, store } = await createPlane(t);
  const namespaces = client.resource(Namespace);
  await namespaces.create({ metadata: { name: 'x' } } as never);
  await namespaces.updateSubresource('x', 'finalize', { metadata: { name: 'x' }, spec: {} } as KubeObject);
  const last = (await namespaces.delete('x')) as KubeObject;
  t.is(last.kind, 'Namespace');
  t.is(last.metadata?.resourceVersion, String(await store.currentRevision()));
});

test('a delete that removes nothing yet returns the object: 200, or 202 when dependents are deleted first', async (t) => {
  const { remove } = await withGadget(t, { finalizers: ['x/y'] });
  t.is((await remove()).code, 200);
  t.is((await remove({ orphanDependents: false })).code, 202);
  t.is((await remove({ orphanDependents: true })).code, 200);
});

test('preconditions are a 409 each and leave the object alone', async (t) => {
  const { gadgets, created } = await withGadget(t);
  const uid = created.metadata?.uid ?? '';
  const version = created.metadata?.resourceVersion ?? '';
  const other = await failure(() => gadgets.delete('a', { preconditions: { uid: 'other' } }));
  t.is(
    other.message,
    'Operation cannot be fulfilled on Gadget.toys.example.com "a": the UID in the precondition (other) does not match ' +
      `the UID in record (${uid}). The object might have been deleted and then recreated`,
  );
  t.deepEqual(other.details, { name: 'a', group: 'toys.example.com', kind: 'Gadget' });
  const stale = await failure(() => gadgets.delete('a', { preconditions: { uid, resourceVersion: '1' } }));
  t.is(stale.code, 409);
  t.regex(
    stale.message ?? '',
    new RegExp(
      `the ResourceVersion in the precondition \\(1\\) does not match the ResourceVersion in record \\(${version}\\)\\. ` +
        'The object might have been modified$',
    ),
  );
  t.deepEqual(await gadgets.get('a'), created);
  t.like(await gadgets.delete('a', { preconditions: { uid, resourceVersion: version } }), { kind: 'Status' });
});

test('contradicting and unknown options are a 422 of kind DeleteOptions', async (t) => {
  const { plane, gadgets } = await withGadget(t);
  for (const options of [
    { orphanDependents: true, propagationPolicy: 'Orphan' },
    { propagationPolicy: 'Sideways' },
  ] as never[]) {
    const status = await failure(() => gadgets.delete('a', options));
    t.like(status, { code: 422, details: { kind: 'DeleteOptions', group: 'meta.k8s.io' } });
    t.is(status.details?.causes?.[0]?.field, 'propagationPolicy');
    t.is((await failure(() => gadgets.deleteCollection(options))).code, 422);
  }
  t.is(await storedCount(plane), 1);
});

test('finalizers hold an object until the last is removed, which removes the object in that write', async (t) => {
  const { plane, gadgets } = await withGadget(t, { finalizers: ['x/y', 'x/z'] });
  const events: string[] = [];
  const watch = await plane.service(Gadget).watch(internalContext(), { namespace: 'n' }, everything);
  const marked = (await gadgets.delete('a', { propagationPolicy: 'Foreground' })) as KubeObject;
  t.like(marked.metadata, { deletionTimestamp: '2026-01-02T03:04:05Z', deletionGracePeriodSeconds: 0, generation: 2 });
  t.deepEqual(marked.metadata?.finalizers, ['x/y', 'x/z', 'foregroundDeletion']);
  plane.clock.advance(10_000);
  t.deepEqual(await gadgets.delete('a'), marked as never, 'a repeated delete changes nothing');
  await gadgets.patch('a', 'json', [{ op: 'remove', path: '/metadata/finalizers/0' }]);
  const dry = await gadgets.patch('a', 'merge', { metadata: { finalizers: null } }, { dryRun: true });
  t.is(dry.metadata?.finalizers, undefined);
  const gone = await gadgets.patch('a', 'merge', { metadata: { finalizers: null } });
  t.deepEqual([gone.metadata?.finalizers, gone.metadata?.uid], [undefined, marked.metadata?.uid]);
  t.is(gone.metadata?.resourceVersion, String(await plane.store.currentRevision()));
  t.is((await failure(() => gadgets.get('a'))).code, 404);
  while (events.at(-1) !== 'DELETED') {
    events.push(...watch.read(100).map((event) => event.type));
    if (events.at(-1) !== 'DELETED') await new Promise<void>((resolve) => watch.onReadable(resolve));
  }
  watch.close();
  t.deepEqual(events, ['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
});

test('an object in graceful deletion can be updated and is removed by a delete with grace period 0', async (t) => {
  const { gadgets } = await withGadget(t, {}, { graceSeconds: 30 });
  const marked = (await gadgets.delete('a')) as KubeObject;
  t.like(marked.metadata, { deletionTimestamp: '2026-01-02T03:04:35Z', deletionGracePeriodSeconds: 30, generation: 2 });
  t.truthy((await gadgets.patch('a', 'merge', { metadata: { labels: { x: 'y' } } })).metadata?.deletionTimestamp);
  t.like((await gadgets.delete('a', { gracePeriodSeconds: 5 })) as KubeObject, {
    metadata: { deletionTimestamp: '2026-01-02T03:04:10Z' },
  });
  t.is(((await gadgets.delete('a', { gracePeriodSeconds: 0 })) as KubeObject).kind, 'Status');
});

test('the default of a kind may orphan, and differ between versions that share storage', async (t) => {
  const { client } = await createPlane(t);
  const carts = client.resource(Cart).namespace('n');
  for (const name of ['a', 'b']) await carts.create({ metadata: { name }, spec: {} } as never);
  t.is(((await carts.delete('a')) as KubeObject).kind, 'Status');
  const orphaning = (await client.resource(OldCart).namespace('n').delete('b')) as KubeObject;
  t.like(orphaning, { kind: 'Cart', apiVersion: 'old.example.com/v1beta1' });
  t.deepEqual(orphaning.metadata?.finalizers, ['orphan']);
});

test('protected namespaces cannot be deleted; others are removed when they have no finalizers', async (t) => {
  const { client } = await createPlane(t);
  const namespaces = client.resource(Namespace);
  await namespaces.create({ metadata: { name: 'x' } } as never);
  t.like(await failure(() => namespaces.delete('default')), {
    code: 403,
    message: 'namespaces "default" is forbidden: this namespace may not be deleted',
  });
  const first = (await namespaces.delete('x')) as KubeObject;
  t.like(first, { status: { phase: 'Terminating' } } as never);
  t.deepEqual(await namespaces.delete('x'), first as never);
});

test('admission may refuse a delete and sees the object', async (t) => {
  const plugin: AdmissionPlugin = {
    name: 'test',
    handles: ({ operation }) => operation === 'delete',
    validate: ({ oldObject, object, name }) => {
      if (object === undefined && oldObject?.metadata?.labels?.['keep']) {
        throw statusErrors.forbidden({ group: '', resource: 'gadgets' }, name, 'kept');
      }
    },
  };
  const plane = await createPlane(t, { admission: [plugin] });
  const gadgets = plane.client.resource(Gadget).namespace('n');
  await gadgets.create({ metadata: { name: 'a', labels: { keep: 'x' } } } as never);
  await gadgets.create({ metadata: { name: 'b' } } as never);
  t.is((await failure(() => gadgets.delete('a'))).code, 403);
  t.is((await failure(() => gadgets.deleteCollection())).code, 403);
  t.is((await failure(() => gadgets.get('b'))).code, 404);
  t.is((await gadgets.get('a')).metadata?.name, 'a');
});

test('a dry run of a delete removes nothing', async (t) => {
  const { plane, gadgets, created } = await withGadget(t, { finalizers: ['x/y'] });
  t.truthy(((await gadgets.delete('a', { dryRun: true })) as KubeObject).metadata?.deletionTimestamp);
  t.is((await failure(() => gadgets.delete('b', { dryRun: true }))).code, 404);
  t.deepEqual((await gadgets.deleteCollection({ dryRun: true })) as unknown, await gadgets.list());
  t.deepEqual(await gadgets.get('a'), created);
  t.is(await storedCount(plane), 1);
});

test('deletecollection deletes the selected objects of one namespace by the rules of a single delete', async (t) => {
  const plane = await createPlane(t);
  const gadgets = plane.client.resource(Gadget);
  const make = (namespace: string, name: string, metadata = {}) =>
    gadgets.create({ metadata: { name, namespace, ...metadata }, spec: {} } as never);
  for (let i = 0; i < 20; i++) await make('n', `a${i}`, { labels: { odd: String(i % 2) } });
  await make('n', 'held', { labels: { odd: '0' }, finalizers: ['x/y'] });
  await make('m', 'other', { labels: { odd: '0' } });
  const selected = await gadgets.namespace('n').list({ labelSelector: 'odd=0' });
  t.is(selected.items.length, 11);
  // The objects as they were.
  t.deepEqual((await gadgets.namespace('n').deleteCollection({ labelSelector: 'odd=0' })) as unknown, selected);
  const left = (await gadgets.namespace('n').list()).items;
  t.is(left.length, 11);
  t.truthy(left.find((gadget) => gadget.metadata?.name === 'held')?.metadata?.deletionTimestamp);
  const limited = (await gadgets
    .namespace('n')
    .deleteCollection({ labelSelector: 'odd=1', limit: 4 })) as KubeList<KubeObject>;
  t.truthy(limited.metadata.continue);
  t.is(limited.items.length, 4);
  t.is((await gadgets.namespace('n').list({ labelSelector: 'odd=1' })).items.length, 6);
  await gadgets.deleteCollection({ propagationPolicy: 'Background' });
  t.deepEqual(
    (await gadgets.list()).items.map((gadget) => gadget.metadata?.name),
    ['held'],
  );
  t.is((await failure(() => plane.client.resource(Open).deleteCollection())).code, 405);
});

test('a collection with more objects than a page is answered whole; a grace period above what is allowed deletes nothing', async (t) => {
  const plane = await createPlane(t);
  const tickets = plane.client.resource(Ticket).namespace('n');
  for (let i = 0; i < 501; i++) await tickets.create({ metadata: { name: `t${i}` } } as never);
  const gracePeriodSeconds = 2 ** 31;
  for (const run of [
    () => tickets.delete('t1', { gracePeriodSeconds }),
    () => tickets.deleteCollection({ gracePeriodSeconds }),
  ]) {
    const { code, details } = await failure(run);
    t.is(code, 422);
    t.is(details?.causes?.[0]?.field, 'gracePeriodSeconds');
  }
  t.is(await storedCount(plane), 501);
  t.is(((await tickets.deleteCollection()) as KubeList<KubeObject>).items.length, 501);
  t.is(await storedCount(plane), 0);
});

test('a negative grace period counts as one second', async (t) => {
  const { client } = await createPlane(t);
  const gadgets = client.resource(Gadget).namespace('n');
  await gadgets.create({ metadata: { name: 'a' }, spec: { graceSeconds: 30 } } as never);
  const deleted = await gadgets.delete('a', { gracePeriodSeconds: -1 });
  t.like(deleted, { metadata: { deletionGracePeriodSeconds: 1 } });
});

test('a DELETE without propagation policy sends the warning of the kind', async (t) => {
  const Warning = Object.freeze({ ...Lock, strategy: { ...Lock.strategy, propagationWarning: 'dependents stay' } });
  const plane = await createPlane(t, { kinds: [Warning] });
  const locks = plane.client.resource(Warning as typeof Lock).namespace('n');
  for (const name of ['a', 'b', 'c']) await locks.create({ metadata: { name } } as never);
  await locks.delete('a', { propagationPolicy: 'Orphan' });
  await locks.delete('b', { orphanDependents: false });
  t.deepEqual(plane.warnings, []);
  await locks.delete('c');
  await locks.deleteCollection();
  t.deepEqual(plane.warnings, ['dependents stay', 'dependents stay']);
});

test('deletecollection of more than a page, while others delete the same objects', async (t) => {
  const plane = await createPlane(t);
  const tickets = plane.client.resource(Ticket).namespace('n');
  for (let i = 0; i < 1100; i++) await tickets.create({ metadata: { name: `t${i}` } } as never);
  const others = Promise.allSettled(Array.from({ length: 300 }, (_, i) => tickets.delete(`t${i * 3}`)));
  await Promise.all([tickets.deleteCollection(), tickets.deleteCollection()]);
  await others;
  t.is(await storedCount(plane), 0);
});
