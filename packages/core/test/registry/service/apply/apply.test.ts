import {
  always,
  defineKind,
  type KubeObject,
  type ManagedFieldsEntry,
  optional,
  type PatchType,
  type Schema,
  type SchemaNode,
  s,
} from '@keelson/core';
import type { ExecutionContext } from 'ava';
import { type FormContext, test } from '../both-forms.ts';
import { Cart, Gadget, OldCart } from '../fixtures.ts';
import { contextWith, createPlane, failure, type PlaneOptions } from '../harness.ts';
import { ownersOf } from './thing.ts';

const name = 'g';

async function gadgets(t: ExecutionContext<FormContext>, options: PlaneOptions = {}) {
  const plane = await createPlane(t, options);
  const client = plane.client.resource(Gadget).namespace('n');
  const service = plane.service(Gadget);
  const config = (spec: object, metadata: object = {}) =>
    ({ apiVersion: 'toys.example.com/v1', kind: 'Gadget', metadata: { name, ...metadata }, spec }) as never;
  const apply = (fieldManager: string, spec: object, metadata: object = {}, force = false) =>
    client.apply(config(spec, metadata), { fieldManager, force });
  /** An apply of any text. */
  const applyText = (text: string, fieldManager = 'a', subresource?: string) => {
    const patch = { type: 'apply' as const, bytes: Buffer.from(text) };
    const parameters = { dryRun: false, fieldValidation: 'Strict' as const, fieldManager };
    const target = { namespace: 'n', name };
    const context = contextWith(() => {});
    const definition = Gadget.subresources.find((entry) => entry.name === subresource);
    return definition === undefined
      ? service.patch(context, target, patch, parameters)
      : service.patchSubresource(context, target, definition, patch, parameters);
  };
  return { ...plane, client, service, config, apply, applyText };
}

const head = 'apiVersion: toys.example.com/v1\nkind: Gadget\nmetadata:\n  name: g\n';

test('bodies that are no configuration of the kind are rejected with the texts of Kubernetes', async (t) => {
  const { applyText } = await gadgets(t);
  const cases: readonly (readonly [body: string, message: RegExp])[] = [
    ['{', /^error decoding YAML: /],
    ['- a', /^error decoding YAML: the document is not an object$/],
    ['a: 1', /^invalid object type: \/, Kind=$/],
    ['apiVersion: v1\nkind: Gadget', /^invalid object type: \/v1, Kind=Gadget$/],
    ['apiVersion: toys.example.com/v1\nkind: Other', /^invalid object type: toys\.example\.com\/v1, Kind=Other$/],
    [`${head}  managedFields: []`, /^metadata\.managedFields must be nil$/],
    [
      `${head}spec:\n  bogus: 1`,
      /^failed to create typed patch object \(\/g; toys\.example\.com\/v1, Kind=Gadget\): \.spec\.bogus: field not declared in schema$/,
    ],
    [
      `${head}  namespace: n\nspec:\n  replicas: x\n  ports: [{name: a, number: 1}, {name: a, number: 2}]`,
      /^failed to create typed patch object \(n\/g; .*\): errors:\n {2}\.spec\.replicas: expected numeric \(int or float\), got string\n {2}\.spec\.ports: duplicate entries for key \[name="a"\]$/,
    ],
    [
      `${head}spec:\n  ports: [{number: 1}]`,
      /: \.spec\.ports: element 0: associative list with keys has an element that omits all key fields \["name"\]/,
    ],
    [`${head}spec:\n  paused: [1]`, /\.spec\.paused: expected boolean, got \[1\]$/],
    [`${head}spec: 1`, /\.spec: expected map, got 1$/],
    [
      `${head}spec:\n  colour: red\n  colour: blue`,
      /^error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n {2}line \d+: key "colour" already set in map$/,
    ],
    [head.replace('name: g', 'name: h'), /^the name of the object \(h\) does not match the name on the URL \(g\)$/],
    [
      'apiVersion: toys.example.com/v1\nkind: Gadget\n',
      /^the name of the object \(g based on URL\) was undeterminable/,
    ],
    [
      `${head}  namespace: other`,
      /^the namespace of the object \(other\) does not match the namespace on the request \(n\)$/,
    ],
  ];
  for (const [body, message] of cases) {
    const status = await failure(() => applyText(body));
    t.is(status.code, 400, body);
    t.regex(status.message ?? '', message);
  }
});

test('an apply needs a field manager', async (t) => {
  const { applyText } = await gadgets(t);
  const status = await failure(() => applyText(head, ''));
  t.is(status.code, 422);
  t.is(
    status.message,
    'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
  );
});

test('an apply creates a missing object with defaults, and not in a dry run', async (t) => {
  const { apply, client, config } = await gadgets(t);
  const dry = await client.apply(config({ colour: 'red' }), { fieldManager: 'a', dryRun: true });
  t.is(dry.spec.replicas, 1);
  t.is((await failure(() => client.get(name))).code, 404);
  const created = await apply('a', { colour: 'red' });
  t.like(created, { metadata: { namespace: 'n', generation: 1 }, spec: { colour: 'red', replicas: 1 } });
  t.deepEqual(created.metadata.managedFields, [
    {
      manager: 'a',
      operation: 'Apply',
      apiVersion: 'toys.example.com/v1',
      time: '2026-01-02T03:04:05Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:colour': {} } },
    },
  ]);
});

test('the answer to a creation is 201, and 200 afterwards', async (t) => {
  const { applyText } = await gadgets(t);
  t.is((await applyText(head)).code, 201);
  t.is((await applyText(head)).code, 200);
});

test('a uid makes the apply depend on the object, a resourceVersion on its state', async (t) => {
  const { apply } = await gadgets(t);
  const missing = await failure(() => apply('a', {}, { uid: 'u' }));
  t.is(missing.code, 409);
  t.true(
    missing.message?.endsWith('uid mismatch: the provided object specified uid u, and no existing object was found'),
  );
  const { metadata } = await apply('a', { colour: 'red' });
  t.is((await failure(() => apply('a', { colour: 'blue' }, { uid: 'u' }))).code, 409);
  t.is((await failure(() => apply('a', { colour: 'blue' }, { resourceVersion: '1' }))).code, 409);
  const { uid, resourceVersion } = metadata;
  const changed = await apply('a', { colour: 'blue' }, { uid, resourceVersion });
  t.is(changed.spec.colour, 'blue');
});

test('conflicts list every field and manager', async (t) => {
  const { apply, client } = await gadgets(t);
  await apply('one', { colour: 'red', settings: { a: '1' } });
  const single = await failure(() => apply('two', { colour: 'blue' }));
  t.is(single.message, 'Apply failed with 1 conflict: conflict with "one": .spec.colour');
  t.deepEqual(single.details, {
    causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.colour' }],
  });
  const current = await client.get(name);
  await client.update({ ...current, spec: { ...current.spec, paused: true } }, { fieldManager: 'three' });
  const several = await failure(() => apply('two', { colour: 'blue', settings: { a: '2' }, paused: false }));
  t.is(
    several.message,
    'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.colour\n- .spec.settings.a\n' +
      'conflicts with "three" using toys.example.com/v1:\n- .spec.paused',
  );
  t.is(several.details?.causes?.length, 3);
});

test('writes of objects that were never applied record no owners', async (t) => {
  const { client } = await gadgets(t);
  const created = await client.create({ metadata: { name }, spec: { colour: 'red' } } as never, { fieldManager: 'x' });
  const updated = await client.update({ ...created, spec: { ...created.spec, colour: 'blue' } });
  const patched = await client.patch(name, 'merge', { spec: { paused: true } });
  for (const object of [created, updated, patched]) t.is(object.metadata.managedFields, undefined);
});

test('every kind of write of an applied object records its manager', async (t) => {
  const { apply, client, service, clock } = await gadgets(t);
  await apply('a', { colour: 'red' });
  const patches: readonly (readonly [PatchType, unknown])[] = [
    ['merge', { spec: { settings: { m: '1' } } }],
    ['json', [{ op: 'add', path: '/spec/settings/j', value: '1' }]],
    ['strategic', { spec: { settings: { s: '1' } } }],
  ];
  for (const [type, patch] of patches) await client.patch(name, type, patch, { fieldManager: type });
  clock.advance(5_000);
  await client.patchSubresource(name, 'status', 'merge', { status: { phase: 'Up' } }, { fieldManager: 'st' });
  await client.patchSubresource(name, 'scale', 'merge', { spec: { replicas: 4 } }, { fieldManager: 'sc' });
  const context = { ...contextWith(() => {}), userAgent: 'tool/v1 (linux)' };
  const patch = { type: 'merge' as const, bytes: Buffer.from('{"spec":{"settings":{"u":"1"}}}') };
  await service.patch(context, { namespace: 'n', name }, patch, { dryRun: false, fieldValidation: 'Warn' });
  const object = await client.get(name);
  t.deepEqual(ownersOf(object), {
    a: ['.colour'],
    'merge~': ['.settings', '.settings.m'],
    'json~': ['.settings.j'],
    'strategic~': ['.settings.s'],
    'st~': ['.status.phase'],
    'sc~': ['.replicas'],
    'tool~': ['.settings.u'],
  });
  const entries = object.metadata.managedFields ?? [];
  t.deepEqual(
    entries.map(({ manager, subresource, time }) => [manager, subresource, time]),
    [
      ['a', undefined, '2026-01-02T03:04:05Z'],
      ['json', undefined, '2026-01-02T03:04:05Z'],
      ['merge', undefined, '2026-01-02T03:04:05Z'],
      ['strategic', undefined, '2026-01-02T03:04:05Z'],
      ['sc', 'scale', '2026-01-02T03:04:10Z'],
      ['st', 'status', '2026-01-02T03:04:10Z'],
      ['tool', undefined, '2026-01-02T03:04:10Z'],
    ],
  );
});

test('an apply through status owns the status alone, one of the object never', async (t) => {
  const { apply, client, config } = await gadgets(t);
  const body = (phase: string) => ({ ...(config({ colour: 'blue' }) as KubeObject), status: { phase } });
  const options = { fieldManager: 'st' };
  t.is((await failure(() => client.patchSubresource(name, 'status', 'apply', body('Up'), options))).code, 404);
  await apply('a', { colour: 'red' });
  const applied = await client.patchSubresource(name, 'status', 'apply', body('Up'), options);
  t.like(applied, { spec: { colour: 'red' }, status: { phase: 'Up' } });
  t.deepEqual(ownersOf(applied), { a: ['.colour'], st: ['.status.phase'] });
  const conflict = await failure(() =>
    client.patchSubresource(name, 'status', 'apply', body('Down'), { fieldManager: 'other' }),
  );
  t.is(conflict.message, 'Apply failed with 1 conflict: conflict with "st" with subresource "status": .status.phase');
  const main = await client.apply({ ...body('Lost'), spec: { colour: 'red' } } as never, { fieldManager: 'b' });
  t.like(main, { status: { phase: 'Up' } });
  t.deepEqual(ownersOf(main)['b'], ['.colour']);
});

test('an apply through scale owns the replicas of the object', async (t) => {
  const { apply, client } = await gadgets(t);
  const scale = (replicas: number) => ({
    apiVersion: 'autoscaling/v1',
    kind: 'Scale',
    metadata: { name },
    spec: { replicas },
  });
  const options = { fieldManager: 'hpa' };
  t.is((await failure(() => client.patchSubresource(name, 'scale', 'apply', scale(2), options))).code, 404);
  await apply('a', { replicas: 1 });
  const conflict = await failure(() => client.patchSubresource(name, 'scale', 'apply', scale(2), options));
  t.is(conflict.message, 'Apply failed with 1 conflict: conflict with "a": .spec.replicas');
  const forced = await client.patchSubresource(name, 'scale', 'apply', scale(2), { ...options, force: true });
  t.like(forced, { kind: 'Scale', spec: { replicas: 2 } });
  t.deepEqual(ownersOf(await client.get(name)), { hpa: ['.replicas'] });
  t.is(
    (await failure(() => apply('a', { replicas: 1 }))).message,
    'Apply failed with 1 conflict: conflict with "hpa" with subresource "scale": .spec.replicas',
  );
  t.is(
    (await failure(() => client.patchSubresource(name, 'scale', 'apply', scale(-1), { ...options, force: true }))).code,
    422,
  );
  const wrong = await failure(() =>
    client.patchSubresource(name, 'scale', 'apply', { ...scale(1), kind: 'Gadget' }, options),
  );
  t.is(wrong.message, 'invalid object type: autoscaling/v1, Kind=Gadget');
});

test('what clients write into managedFields is checked, and kept when it can be read', async (t) => {
  const { apply, client } = await gadgets(t);
  const applied = await apply('a', { colour: 'red' });
  const withFields = (managedFields: ManagedFieldsEntry[]) => ({
    ...applied,
    metadata: { ...applied.metadata, managedFields },
  });
  const [entry] = applied.metadata.managedFields ?? [];
  const invalid = await failure(() =>
    client.update(
      withFields([
        { ...entry, operation: 'Patch', fieldsType: 'V2', manager: 'x'.repeat(129), subresource: 'y'.repeat(257) },
      ]),
    ),
  );
  t.is(invalid.code, 422);
  t.deepEqual(
    invalid.details?.causes?.map(({ field, message }) => `${field}: ${message}`),
    [
      'metadata.managedFields[0].operation: Invalid value: "Patch": must be `Apply` or `Update`',
      'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
      'metadata.managedFields[0].manager: Too long: may not be more than 128 bytes',
      'metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes',
    ],
  );
  const unreadable = await client.update(withFields([{ ...entry, fieldsV1: { 'k:{': {} } }]));
  t.deepEqual(ownersOf(unreadable), { a: ['.colour'] });
  const renamed = await client.update(withFields([{ ...entry, manager: 'renamed' }]));
  t.deepEqual(ownersOf(renamed), { renamed: ['.colour'] });
  for (const reset of [[{}], []]) {
    await apply('a', { colour: 'red' });
    const cleared = await client.patch(name, 'merge', { metadata: { managedFields: reset } });
    t.is(cleared.metadata.managedFields, undefined);
  }
});

test('an object created with managedFields is tracked from its creation', async (t) => {
  const { client } = await gadgets(t);
  const managedFields = [
    {
      manager: 'old',
      operation: 'Apply',
      apiVersion: 'toys.example.com/v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:paused': {} } },
    },
  ];
  const created = await client.create(
    { metadata: { name, managedFields }, spec: { colour: 'red', paused: true } } as never,
    {
      fieldManager: 'restore',
    },
  );
  // The creation changes every field, so that what the record claims is its own.
  t.deepEqual(Object.keys(ownersOf(created)), ['restore~']);
});

test('more than ten updaters are joined to one of ancient changes', async (t) => {
  const { apply, client, clock } = await gadgets(t);
  await apply('a', { colour: 'red' });
  for (let i = 0; i < 14; i++) {
    clock.advance(1_000);
    await client.patch(name, 'merge', { spec: { settings: { [`k${i}`]: 'v' } } }, { fieldManager: `m${i}` });
  }
  const { managedFields = [] } = (await client.get(name)).metadata;
  const updaters = managedFields.filter(({ operation }) => operation === 'Update');
  t.is(updaters.length, 10);
  t.deepEqual(ownersOf(await client.get(name))['ancient-changes~'], [
    '.settings',
    ...['k0', 'k1', 'k2', 'k3', 'k4'].map((key) => `.settings.${key}`),
  ]);
});

test('kubectl takes over what client-side apply set, and keeps its annotation up to date', async (t) => {
  const { apply, client } = await gadgets(t);
  const annotation = 'kubectl.kubernetes.io/last-applied-configuration';
  const last = {
    apiVersion: 'toys.example.com/v1',
    kind: 'Gadget',
    metadata: { name },
    spec: { colour: 'red', paused: true },
  };
  const annotations = { [annotation]: JSON.stringify(last) };
  await client.create({ ...last, metadata: { name, annotations }, spec: { ...last.spec, size: '1' } } as never);
  const other = await failure(() => apply('helm', { colour: 'blue', size: '2' }));
  t.is(
    other.message,
    'Apply failed with 2 conflicts: conflicts with "before-first-apply" using toys.example.com/v1:\n- .spec.size\n' +
      'conflicts with "kubectl-client-side-apply" using toys.example.com/v1:\n- .spec.colour',
  );
  t.is(
    (await failure(() => apply('kubectl', { colour: 'blue', size: '2' }))).message,
    'Apply failed with 1 conflict: conflict with "before-first-apply" using toys.example.com/v1: .spec.size',
  );
  const applied = await apply('kubectl', { colour: 'blue' });
  t.is(applied.spec.colour, 'blue');
  t.is(
    applied.metadata.annotations?.[annotation],
    '{"apiVersion":"toys.example.com/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"colour":"blue"}}\n',
  );
  t.deepEqual(ownersOf(applied)['kubectl'], ['.colour']);
  t.deepEqual(ownersOf(applied)['kubectl-client-side-apply~'], [
    '',
    '.metadata.annotations',
    `.metadata.annotations.${annotation}`,
    '.paused',
  ]);
});

test('concurrent applies of different managers are all kept', async (t) => {
  const { apply, client } = await gadgets(t);
  const managers = Array.from({ length: 8 }, (_, i) => `m${i}`);
  await Promise.all(managers.map((manager) => apply(manager, { settings: { [manager]: 'x' } })));
  const object = await client.get(name);
  t.deepEqual(object.spec.settings, Object.fromEntries(managers.map((manager) => [manager, 'x'])));
  t.deepEqual(ownersOf(object), Object.fromEntries(managers.map((manager) => [manager, [`.settings.${manager}`]])));
});

test('deep and large managedFields and configurations are handled in linear time', async (t) => {
  const { apply, client } = await gadgets(t);
  const applied = await apply('a', { colour: 'red' });
  let deep: Record<string, unknown> = {};
  for (let i = 0; i < 180; i++) deep = { 'f:x': deep };
  const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`f:${i}`, {}]));
  const entry = { manager: 'h', operation: 'Update', apiVersion: 'toys.example.com/v1', fieldsType: 'FieldsV1' };
  const hostile = [...(applied.metadata.managedFields ?? []), { ...entry, fieldsV1: { ...wide, 'f:deep': deep } }];
  const kept = await client.update({ ...applied, metadata: { ...applied.metadata, managedFields: hostile } });
  t.is(kept.metadata.managedFields?.length, 2);
  const settings = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'v']));
  const ports = Array.from({ length: 3_000 }, (_, i) => ({ name: `p${i}`, number: (i % 65_535) + 1 }));
  await apply('b', { settings, ports });
  const reversed = await apply('b', { settings, ports: [...ports].reverse() });
  t.is(reversed.spec.ports?.[0]?.name, 'p2999');
  const pruned = await apply('b', { ports: ports.slice(0, 1) });
  t.deepEqual(pruned.spec.ports, ports.slice(0, 1));
  t.is(Object.keys(pruned.spec.settings ?? {}).length, 0);
});

test('owners of another version keep their fields, conflict, and give them up', async (t) => {
  const { client } = await createPlane(t);
  const carts = client.resource(Cart).namespace('n');
  const oldCarts = client.resource(OldCart).namespace('n');
  const metadata = { name };
  await oldCarts.apply({ metadata, spec: { weight: 1 } } as never, { fieldManager: 'a' });
  const conflict = await failure(() => carts.apply({ metadata, spec: { load: 2 } } as never, { fieldManager: 'b' }));
  t.is(conflict.details?.causes?.[0]?.message, 'conflict with "a"');
  t.is(conflict.details?.causes?.[0]?.field, '.spec.weight');
  const shared = await carts.apply({ metadata, spec: { load: 1 } } as never, { fieldManager: 'b' });
  t.deepEqual(ownersOf(shared), { a: ['.weight'], b: ['.load'] });
  await carts.apply({ metadata, spec: {} } as never, { fieldManager: 'b' });
  t.like(await carts.get(name), { spec: { load: 1 } });
  const released = await carts.apply({ metadata, spec: {} } as never, { fieldManager: 'a' });
  t.deepEqual(released.spec, {} as never);
});

test('kinds whose schema is JSON Schema: lists by their keys, open objects, undeclared fields', async (t) => {
  const item = s.object({ name: optional(s.string()), v: optional(s.string()) });
  const spec = s.object({ list: optional(s.listByKey(item, 'name')), open: optional(s.any()) });
  const structure = s.object({ spec: optional(spec) }).node as Extract<SchemaNode, { type: 'message' }>;
  const complete = (object: Readonly<Record<string, unknown>>, unknown: (path: string) => void) => {
    const { bogus, ...kept } = (object['spec'] ?? {}) as Record<string, unknown>;
    if (bogus !== undefined) unknown('spec.bogus');
    return { spec: kept };
  };
  const Custom = defineKind({
    group: 'custom.example.com',
    version: 'v1',
    kind: 'Custom',
    schema: { node: { ...structure, json: { complete, published: () => ({}) } } } as Schema<object>,
    structural: false,
  });
  const { client } = await createPlane(t, { kinds: [Custom] });
  const customs = client.dynamic({ group: Custom.group, version: 'v1', resource: 'customs' }).namespace('n');
  const apply = (fieldManager: string, own: object) =>
    customs.apply({ metadata: { name }, spec: own } as never, { fieldManager });
  await apply('a', { list: [{ name: 'x', v: '1' }], open: { deep: { a: 1 } } });
  const merged = await apply('b', { list: [{ name: 'y', v: '1' }], open: { deep: { b: 1 } } });
  t.like(merged, { spec: { open: { deep: { a: 1, b: 1 } }, list: [{ name: 'x' }, { name: 'y' }] } });
  t.true(ownersOf(merged)['b']?.includes('.open.deep.b'));
  const message = /: \.spec\.bogus: field not declared in schema$/;
  t.regex((await failure(() => apply('b', { bogus: 1 }))).message ?? '', message);
  t.is((await failure(() => apply('b', { open: { deep: { a: 2 } } }))).code, 409);
});

test('an empty list that is always present has no owner before the first apply', async (t) => {
  const Rules = defineKind({
    group: 'rules.example.com',
    version: 'v1',
    kind: 'RuleSet',
    schema: s.object({
      rules: always(undefined, s.list(s.string(), { listType: 'atomic' }), 'Rules.'),
      spec: optional(s.object({ names: always(undefined, s.list(s.string(), { listType: 'atomic' }), 'Names.') })),
    }),
  });
  const { client } = await createPlane(t, { kinds: [Rules] });
  const sets = client.resource(Rules).namespace('n');
  const created = await sets.create({ metadata: { name }, spec: {} } as never);
  t.like(created, { rules: [], spec: { names: [] } });
  const applied = await sets.apply({ metadata: { name }, rules: ['a'], spec: { names: ['b'] } }, { fieldManager: 'a' });
  t.deepEqual([applied.rules, applied.spec?.names], [['a'], ['b']]);
  const other = await failure(() => sets.apply({ metadata: { name }, rules: ['c'] } as never, { fieldManager: 'b' }));
  t.is(other.message, 'Apply failed with 1 conflict: conflict with "a": .rules');
});
