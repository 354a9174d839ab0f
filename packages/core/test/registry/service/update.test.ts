import { type AdmissionPlugin, internalContext, type KubeObject } from '@keelson/core';
import { test } from './both-forms.ts';
import { Cart, Gadget, Lock, Namespace, OldCart, Ticket } from './fixtures.ts';
import { createPlane, failure, json, lenient, type Plane, storedCount, text } from './harness.ts';

const lockText = 'the object has been modified; please apply your changes to the latest version and try again';

async function withGadget(t: Parameters<typeof createPlane>[0], options: Parameters<typeof createPlane>[1] = {}) {
  const plane = await createPlane(t, options);
  const gadgets = plane.client.resource(Gadget).namespace('n');
  const created = await gadgets.create({
    metadata: { name: 'a', labels: { app: 'x' } },
    spec: { replicas: 2, colour: 'red', selector: { a: 'b' } },
  } as never);
  return { plane, gadgets, created };
}

function changed<T extends KubeObject>(object: T, change: (copy: T & Record<string, never>) => void): T {
  const copy = JSON.parse(JSON.stringify(object)) as T & Record<string, never>;
  change(copy);
  return copy;
}

const putRaw = (plane: Plane, name: string, body: unknown) =>
  plane
    .service(Gadget)
    .update(internalContext(), { namespace: 'n', name }, typeof body === 'string' ? text(body) : json(body), lenient);

test('identity of a PUT: every disagreement of body and path is a 400', async (t) => {
  const { plane } = await withGadget(t);
  const cases: [unknown, string][] = [
    [{ metadata: {} }, 'the name of the object (a based on URL) was undeterminable: name must be provided'],
    [{ metadata: { name: 'b' } }, 'the name of the object (b) does not match the name on the URL (a)'],
    [
      { metadata: { name: 'a', namespace: 'm' } },
      'the namespace of the object (m) does not match the namespace on the request (n)',
    ],
  ];
  for (const [body, message] of cases) {
    t.like(await failure(() => putRaw(plane, 'a', body)), { code: 400, message });
  }
  t.like(await failure(() => putRaw(plane, 'ghost', { metadata: { name: 'ghost' } })), {
    code: 404,
    message: 'gadgets.toys.example.com "ghost" not found',
    details: { name: 'ghost', group: 'toys.example.com', kind: 'gadgets' },
  });
});

test('checks come in order: identity, existence, uid, version, validation', async (t) => {
  const { plane, created } = await withGadget(t);
  const bad = { spec: { replicas: -1, selector: { a: 'b' } } };
  const code = async (name: string, metadata: Record<string, unknown>, spec: unknown = bad.spec) =>
    (await failure(() => putRaw(plane, name, { metadata: { name, ...metadata }, spec }))).code;
  t.is(await code('ghost', {}), 404, 'existence before validation');
  const uid = await failure(() =>
    putRaw(plane, 'a', { metadata: { name: 'a', uid: 'other', resourceVersion: '1' }, ...bad }),
  );
  t.is(uid.code, 409);
  t.is(
    uid.message,
    `Operation cannot be fulfilled on gadgets.toys.example.com "a": Precondition failed: UID in precondition: other, UID in object meta: ${created.metadata?.uid}`,
  );
  const version = await failure(() => putRaw(plane, 'a', { metadata: { name: 'a', resourceVersion: '1' }, ...bad }));
  t.like(version, { code: 409, message: `Operation cannot be fulfilled on gadgets.toys.example.com "a": ${lockText}` });
  t.is(await code('a', { resourceVersion: created.metadata?.resourceVersion }), 422);
  t.is(await code('a', {}), 422);
});

test('a PUT keeps status and server-set metadata and increases the generation only with the spec', async (t) => {
  const { gadgets, created } = await withGadget(t);
  const relabelled = await gadgets.update(
    changed(created, (o) => Object.assign(o.metadata ?? {}, { labels: { app: 'y' } })),
  );
  t.is(relabelled.metadata?.generation, 1);
  const stripped = await gadgets.update({
    metadata: { name: 'a', generation: 77, creationTimestamp: '2001-01-01T00:00:00Z', managedFields: [] },
    spec: { replicas: 5, selector: { a: 'b' } },
    status: { phase: 'Mine' },
  } as never);
  t.like(stripped, {
    metadata: { uid: created.metadata?.uid ?? '', generation: 2, creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: { replicas: 5 },
    status: {},
  });
  t.deepEqual(Object.keys(stripped.metadata ?? {}).sort(), [
    'creationTimestamp',
    'generation',
    'name',
    'namespace',
    'resourceVersion',
    'uid',
  ]);
  t.true(Number(stripped.metadata?.resourceVersion) > Number(relabelled.metadata?.resourceVersion));
});

test('a write that changes nothing stores nothing, whatever the order of its keys', async (t) => {
  const { plane, gadgets, created } = await withGadget(t);
  const before = await plane.store.currentRevision();
  const reversed = {
    spec: { selector: { a: 'b' }, colour: 'red', replicas: 2 },
    metadata: { labels: { app: 'x' }, namespace: 'n', name: 'a' },
  };
  t.deepEqual(await gadgets.update(reversed as never), created);
  t.deepEqual(await gadgets.patch('a', 'merge', { spec: { replicas: 2 } }), created);
  t.deepEqual(await gadgets.patch('a', 'json', []), created);
  t.is(await plane.store.currentRevision(), before);
});

test('metadata that must not change', async (t) => {
  const { gadgets, created } = await withGadget(t);
  for (const meta of [{ deletionTimestamp: '2026-01-02T03:04:05Z' }, { deletionGracePeriodSeconds: 3 }]) {
    const status = await failure(() => gadgets.update(changed(created, (o) => Object.assign(o.metadata ?? {}, meta))));
    t.is(status.code, 422);
    t.deepEqual(status.details?.causes, [
      {
        reason: 'FieldValueInvalid',
        field: `metadata.${Object.keys(meta)[0]}`,
        message: `Invalid value: ${JSON.stringify(Object.values(meta)[0])}: field is immutable`,
      },
    ]);
  }
  const immutable = await failure(() => gadgets.patch('a', 'merge', { spec: { selector: { a: 'c' } } }));
  t.like(immutable.details?.causes?.[0], { field: 'spec.selector' });
});

test('no finalizer joins a deleting object, and repeated owners are dropped with a remark', async (t) => {
  const { plane, gadgets } = await withGadget(t);
  const owner = { apiVersion: 'v1', kind: 'Lock', name: 'l', uid: 'u' };
  const owned = await gadgets.patch('a', 'merge', {
    metadata: { ownerReferences: [owner, owner], finalizers: ['x/y'] },
  });
  t.deepEqual(owned.metadata?.ownerReferences, [owner]);
  const { uid, ...rest } = owner;
  await gadgets.update({ ...owned, metadata: { ...owned.metadata, ownerReferences: [owner, { uid, ...rest }] } });
  const seen = plane.warnings.filter((text) => text.includes('ownerReferences'));
  const remark = (when: string) =>
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner references in 1.20+, ` +
    'and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u';
  t.deepEqual(seen, [remark(' after mutating admission happens'), remark('')]);
  await gadgets.delete('a');
  const status = await failure(() => gadgets.patch('a', 'merge', { metadata: { finalizers: ['x/y', 'x/z'] } }));
  t.is(status.code, 422);
  t.like(status.details?.causes?.[0], { reason: 'FieldValueForbidden', field: 'metadata.finalizers' });
  const still = await gadgets.patch('a', 'merge', { metadata: { labels: { more: '1' }, deletionTimestamp: null } });
  t.truthy(still.metadata?.deletionTimestamp, 'the mark cannot be taken away');
});

test('kinds that require a resourceVersion on updates reject updates without one', async (t) => {
  const { client } = await createPlane(t);
  const locks = client.resource(Lock).namespace('n');
  const lock = await locks.create({ metadata: { name: 'a' }, holder: 'x' });
  for (const resourceVersion of [undefined, '', '0']) {
    const status = await failure(() =>
      locks.update({
        metadata: { name: 'a', ...(resourceVersion === undefined ? {} : { resourceVersion }) },
        holder: 'y',
      }),
    );
    t.is(status.code, 422);
    t.regex(status.message ?? '', /^locks\S* "a" is invalid: metadata.resourceVersion/);
    t.like(status.details?.causes?.[0], {
      field: 'metadata.resourceVersion',
      message: 'Invalid value: 0: must be specified for an update',
    });
  }
  t.is((await locks.update({ ...lock, holder: 'y' })).holder, 'y');
  t.is((await locks.patch('a', 'merge', { holder: 'z' })).holder, 'z');
});

test('PUT creates what is missing where the kind allows it: 201, with the rules of a create', async (t) => {
  const plane = await createPlane(t, { lifecycle: true });
  await plane.client.resource(Namespace).create({ metadata: { name: 'n' } } as never);
  const put = (name: string, body: KubeObject, namespace = 'n', parameters = lenient) =>
    plane.service(Ticket).update(internalContext(), { namespace, name }, json(body), parameters);
  t.is((await put('a', { metadata: { name: 'a' } }, 'n', { ...lenient, dryRun: true })).code, 201);
  t.is((await put('a', { metadata: { name: 'a' } })).code, 201);
  t.is((await put('a', { metadata: { name: 'a' } })).code, 200);
  const ticket = await plane.client.resource(Ticket).namespace('n').get('a');
  t.truthy(ticket.metadata?.uid);
  t.is((await failure(() => put('b', { metadata: { name: 'b', uid: 'x' } }))).code, 409);
  t.is((await failure(() => put('b', { metadata: { name: 'b' } }, 'gone'))).code, 404);
  t.is((await failure(() => put('B', { metadata: { name: 'B' } }))).code, 422);
  const huge = 'x'.repeat(2000);
  t.is((await failure(() => put(huge, { metadata: { name: huge } }))).code, 422);
  t.is((await failure(() => put('x/y', { metadata: { name: 'x/y' } }))).code, 422);
  t.is(await storedCount(plane), 2);
});

test('a kind with a lifetime expires after its last write', async (t) => {
  const plane = await createPlane(t);
  const tickets = plane.client.resource(Ticket).namespace('n');
  await tickets.create({ metadata: { name: 'a' }, count: 1 });
  plane.clock.advance(40_000);
  await tickets.patch('a', 'merge', { count: 2 });
  plane.clock.advance(40_000);
  t.is((await tickets.get('a')).count, 2);
  plane.clock.advance(30_000);
  t.is((await failure(() => tickets.get('a'))).code, 404);
});

test('a status write changes status and labels, but not the spec or the generation', async (t) => {
  const { plane, gadgets, created } = await withGadget(t);
  const written = await gadgets.updateSubresource('a', 'status', {
    ...created,
    metadata: { ...created.metadata, labels: { seen: 'yes' } },
    spec: { replicas: 9 },
    status: { phase: 'Running', replicas: 2 },
  } as KubeObject);
  t.like(written, {
    metadata: { labels: { seen: 'yes' }, generation: 1 },
    spec: { replicas: 2, colour: 'red' },
    status: { phase: 'Running', replicas: 2 },
  } as never);
  const kept = await gadgets.update({
    metadata: { name: 'a' },
    spec: { replicas: 3, selector: { a: 'b' } },
    status: {},
  } as never);
  t.deepEqual([kept.status, kept.metadata?.generation], [{ phase: 'Running', replicas: 2 }, 2]);
  const patched = await gadgets.patchSubresource('a', 'status', 'merge', {
    spec: { replicas: 1 },
    status: { phase: null },
  });
  t.like(patched, { spec: { replicas: 3 }, status: { replicas: 2 } } as never);
  t.deepEqual(await gadgets.getSubresource('a', 'status'), patched);
  const stale = await failure(() => gadgets.updateSubresource('a', 'status', created));
  t.is(stale.code, 409);
  t.is((await failure(() => gadgets.updateSubresource('ghost', 'status', { metadata: { name: 'ghost' } }))).code, 404);
  const before = await plane.store.currentRevision();
  await gadgets.patchSubresource('a', 'status', 'merge', { spec: { replicas: 100 } });
  t.is(await plane.store.currentRevision(), before, 'a status write of the spec alone is no change');
  const invalid = { ports: [{ name: 'a' }] };
  const ignored = await gadgets.patchSubresource('a', 'status', 'merge', { spec: invalid, status: { phase: 'New' } });
  t.like(ignored, { spec: { replicas: 3 }, status: { phase: 'New' } } as never);
  t.is((await failure(() => gadgets.patch('a', 'merge', { spec: invalid }))).code, 422);
});

test('patches of all three types are applied; invalid ones and other content types are rejected', async (t) => {
  const { plane, gadgets } = await withGadget(t);
  const ports = [
    { name: 'a', number: 1 },
    { name: 'b', number: 2 },
  ];
  await gadgets.patch('a', 'merge', { spec: { ports } });
  t.deepEqual((await gadgets.patch('a', 'strategic', { spec: { ports: [{ name: 'b', number: 3 }] } })).spec.ports, [
    { name: 'a', number: 1 },
    { name: 'b', number: 3 },
  ]);
  t.deepEqual((await gadgets.patch('a', 'merge', { spec: { ports: [{ name: 'b', number: 3 }] } })).spec.ports, [
    { name: 'b', number: 3 },
  ]);
  t.is((await gadgets.patch('a', 'json', [{ op: 'remove', path: '/spec/ports' }])).spec.ports, undefined);
  const bad: [type: 'json' | 'merge' | 'strategic', patch: unknown, code: number, field?: string][] = [
    ['json', {}, 400],
    ['json', [{ op: 'test', path: '/spec/replicas', value: 99 }], 422],
    ['json', [{ op: 'remove', path: '/spec/nothing' }], 422],
    ['json', Array(10_001).fill({ op: 'test', path: '/kind', value: 'Gadget' }), 413],
    ['merge', { spec: { replicas: 'many' } }, 422, 'patch'],
    ['merge', { kind: 'Lock' }, 422, 'patch'],
    ['merge', { apiVersion: 'v1' }, 422, 'patch'],
    ['merge', [], 400],
    ['merge', { spec: { replicas: -1 } }, 422, 'spec.replicas'],
    ['merge', { metadata: { name: 'b' } }, 400],
    ['merge', { metadata: { namespace: 'm' } }, 400],
    ['merge', { metadata: { uid: 'other' } }, 409],
    ['merge', { metadata: { resourceVersion: '1' } }, 409],
    ['strategic', { spec: { $patch: 'wild' } }, 422],
    ['json', [{ op: 'replace', path: '', value: 7 }], 422, 'patch'],
  ];
  const before = await plane.store.currentRevision();
  for (const [type, patch, code, field] of bad) {
    const what = JSON.stringify(patch).slice(0, 80);
    const status = await failure(() => gadgets.patch('a', type, patch));
    t.is(status.code, code, `${what}: ${status.message}`);
    if (field !== undefined) t.is(status.details?.causes?.[0]?.field, field, what);
  }
  const broken = await failure(() =>
    plane
      .service(Gadget)
      .patch(internalContext(), { namespace: 'n', name: 'a' }, { type: 'merge', bytes: Buffer.from('{') }, lenient),
  );
  t.is(broken.code, 400);
  t.is((await failure(() => gadgets.patch('ghost', 'merge', {}))).code, 404);
  t.is(await plane.store.currentRevision(), before);
  const restored = await gadgets.patch('a', 'merge', {
    metadata: { uid: null, creationTimestamp: null, generation: 50 },
  });
  t.is(restored.metadata?.generation, 5, 'one for the create, four for the patches above');
  t.truthy(restored.metadata?.uid);
});

test('patches and field validation: Strict is a 422 on the field patch', async (t) => {
  const { plane, gadgets } = await withGadget(t);
  const patch = { type: 'merge', bytes: Buffer.from('{"spec":{"x":1,"replicas":3,"replicas":4}}') } as const;
  const run = (fieldValidation: 'Strict' | 'Warn') =>
    plane
      .service(Gadget)
      .patch(
        { ...internalContext(), warn: (text) => plane.warnings.push(text) },
        { namespace: 'n', name: 'a' },
        patch,
        {
          dryRun: false,
          fieldValidation,
        },
      );
  const status = await failure(() => run('Strict'));
  t.is(status.code, 422);
  t.is(status.details?.causes?.[0]?.field, 'patch');
  t.regex(status.message ?? '', /strict decoding error: unknown field "spec.x", duplicate field "spec.replicas"/);
  await run('Warn');
  t.deepEqual(plane.warnings, ['unknown field "spec.x"', 'duplicate field "spec.replicas"']);
  t.is((await gadgets.get('a')).spec.replicas, 4);
});

test('kinds with open schemas reject strategic merge patches', async (t) => {
  const { client } = await createPlane(t);
  const opens = client.dynamic({ group: 'custom.example.com', version: 'v1', resource: 'opens' });
  await opens.create({ metadata: { name: 'a' } });
  t.like(await failure(() => opens.patch('a', 'strategic', {})), { code: 415, reason: 'UnsupportedMediaType' });
  t.like(await opens.patch('a', 'merge', { spec: { deep: [1, { x: null }] } }), {
    spec: { deep: [1, { x: null }] },
  } as never);
});

test('a patch in the other version of shared storage is applied to and returned in that version', async (t) => {
  const { client } = await createPlane(t);
  const old = client.resource(OldCart).namespace('n');
  await client
    .resource(Cart)
    .namespace('n')
    .create({ metadata: { name: 'a' }, spec: { load: 4 } } as never);
  t.like(await old.patch('a', 'json', [{ op: 'replace', path: '/spec/weight', value: 6 }]), {
    spec: { weight: 6 },
  } as never);
  t.like(await client.resource(Cart).namespace('n').get('a'), {
    spec: { load: 6 },
    metadata: { generation: 2 },
  } as never);
});

test('dry runs of PUT and PATCH return the result and store nothing', async (t) => {
  const { plane, gadgets, created } = await withGadget(t);
  const before = await plane.store.currentRevision();
  const put = await gadgets.update(
    changed(created, (o) => Object.assign(o, { spec: { ...created.spec, replicas: 7 } })),
    { dryRun: true },
  );
  t.like(put, { spec: { replicas: 7 }, metadata: { generation: 2, uid: created.metadata?.uid ?? '' } });
  t.is((await gadgets.patch('a', 'merge', { spec: { replicas: 8 } }, { dryRun: true })).spec.replicas, 8);
  t.is((await failure(() => gadgets.patch('a', 'merge', { spec: { replicas: -8 } }, { dryRun: true }))).code, 422);
  t.is((await failure(() => gadgets.patch('b', 'merge', {}, { dryRun: true }))).code, 404);
  t.is(await plane.store.currentRevision(), before);
});

test('admission on updates sees both objects; warnings reach the client', async (t) => {
  const seen: unknown[] = [];
  const plugin: AdmissionPlugin = {
    name: 'test',
    handles: (request) => request.operation === 'update',
    mutate: ({ object, oldObject, subresource }) => {
      const replicas = (o: unknown) => (o as { spec: { replicas: number } }).spec.replicas;
      seen.push([subresource, replicas(oldObject), replicas(object)]);
    },
  };
  const { plane, gadgets } = await withGadget(t, { admission: [plugin] });
  await gadgets.patch('a', 'merge', { spec: { replicas: 3, colour: 'green' } });
  await gadgets.patchSubresource('a', 'status', 'merge', { status: { phase: 'x' } });
  t.deepEqual(seen, [
    [undefined, 2, 3],
    ['status', 3, 3],
  ]);
  t.deepEqual(plane.warnings, ['green fades']);
});

test('of many racers on one version exactly one wins', async (t) => {
  const { gadgets, created } = await withGadget(t);
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, (_, i) =>
      gadgets.update(changed(created, (o) => Object.assign(o, { spec: { ...created.spec, replicas: 100 + i } }))),
    ),
  );
  const won = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  t.is(won.length, 1);
  t.deepEqual(await gadgets.get('a'), won[0]);
  for (const result of results) if (result.status === 'rejected') t.is(result.reason.code, 409);
});

test('patches that race all land; one that names a version does not', async (t) => {
  const { gadgets, created } = await withGadget(t);
  await Promise.all(
    Array.from({ length: 60 }, (_, i) => gadgets.patch('a', 'merge', { spec: { settings: { [`k${i}`]: 'v' } } })),
  );
  const final = await gadgets.get('a');
  t.is(Object.keys(final.spec.settings ?? {}).length, 60);
  t.is(final.metadata?.generation, 61);
  const version = { metadata: { resourceVersion: final.metadata?.resourceVersion }, spec: { paused: true } };
  const raced = await Promise.allSettled(
    Array.from({ length: 5 }, (_, i) => gadgets.patch('a', 'merge', { ...version, spec: { replicas: 50 + i } })),
  );
  t.is(raced.filter((result) => result.status === 'fulfilled').length, 1);
  t.is(
    (
      await failure(() =>
        gadgets.patch('a', 'merge', { metadata: { resourceVersion: created.metadata?.resourceVersion } }),
      )
    ).code,
    409,
  );
});

test('an operation with several attempts reports each warning once', async (t) => {
  const { plane, gadgets } = await withGadget(t);
  await gadgets.patch('a', 'merge', { spec: { colour: 'green' } });
  plane.warnings.length = 0;
  await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      gadgets.patch('a', 'merge', { unknown: 1, spec: { settings: { [`k${i}`]: 'v' } } }),
    ),
  );
  t.is(plane.warnings.filter((text) => text === 'green fades').length, 30);
  t.is(plane.warnings.filter((text) => text === 'unknown field "unknown"').length, 30);
});
