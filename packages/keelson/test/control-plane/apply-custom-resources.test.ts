import { until } from '@keelson/test-support';
import test from 'ava';
import { createControlPlane } from '../../src/index.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of any kind
type Json = any;

const text = { type: 'string' };
const strings = (listType?: string) => ({
  ...{ type: 'array', items: text },
  ...(listType ? { 'x-kubernetes-list-type': listType } : {}),
});

const spec = {
  type: 'object',
  properties: {
    size: { type: 'integer', default: 1 },
    ports: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      items: {
        type: 'object',
        required: ['port'],
        properties: { port: { type: 'integer' }, protocol: { ...text, default: 'TCP' }, name: text },
      },
    },
    tags: strings('set'),
    order: strings(),
    labels: { type: 'object', additionalProperties: text },
    selector: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
    open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    whole: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' },
    target: { type: 'object', properties: { name: text, kind: text }, 'x-kubernetes-map-type': 'atomic' },
  },
};

const version = (name: string, storage: boolean) => ({
  ...{ name, storage, served: true, subresources: { status: {} } },
  schema: {
    openAPIV3Schema: { type: 'object', properties: { spec, status: { type: 'object', properties: { phase: text } } } },
  },
});

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gates.example.com' },
  spec: {
    ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'gates', kind: 'Gate' } },
    versions: [version('v1', true), version('v1beta1', false)],
  },
};

test('custom resources are applied item by item as their schema says, in each of their versions', async (t) => {
  const plane = await createControlPlane({ storage: 'memory:' });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  const call = async (method: string, path: string, body: unknown, type: string): Promise<[number, Json]> => {
    const answer = await fetch(`${url}${path}`, {
      ...{ method, body: JSON.stringify(body), headers: { 'Content-Type': type } },
    });
    return [answer.status, await answer.json()];
  };
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  t.is((await call('POST', definitions, definition, 'application/json'))[0], 201);
  const gates = (name: string) => `/apis/example.com/${name}/namespaces/default/gates`;
  await until(async () => (await fetch(`${url}${gates('v1beta1')}`)).status === 200, 'the definition is served');

  const apply = (manager: string, content: object, { as = 'v1', query = '', of = '', name = 'a' } = {}) => {
    const body = { apiVersion: `example.com/${as}`, kind: 'Gate', metadata: { name }, ...content };
    const path = `${gates(as)}/${name}${of}?fieldManager=${manager}${query}`;
    return call('PATCH', path, body, 'application/apply-patch+yaml');
  };
  const applied = async (...request: Parameters<typeof apply>): Promise<Json> => {
    const [status, json] = await apply(...request);
    t.true(status === 200 || status === 201, JSON.stringify(json));
    return json;
  };
  const conflicts = async (...request: Parameters<typeof apply>): Promise<string[]> => {
    const [status, json] = await apply(...request);
    t.is(status, 409, JSON.stringify(json));
    return json.details.causes.map(({ field, message }: Json) => `${field}: ${message}`);
  };
  const owners = ({ metadata }: Json, manager: string) =>
    metadata.managedFields.filter((entry: Json) => entry.manager === manager);

  const first = await applied('one', {
    spec: {
      ports: [
        { port: 53, name: 'dns' },
        { port: 53, protocol: 'UDP' },
      ],
      tags: ['x', 'y'],
      order: ['1', '2'],
      labels: { mine: '1' },
      selector: { app: 'a' },
      open: { deep: { mine: '1' } },
      whole: { mine: '1' },
      target: { name: 'n' },
    },
  });
  t.is(first.spec.size, 1);
  t.is(first.spec.ports[0].protocol, 'TCP');
  t.deepEqual(owners(first, 'one')[0].fieldsV1['f:spec'], {
    'f:ports': {
      'k:{"port":53,"protocol":"TCP"}': { '.': {}, 'f:name': {}, 'f:port': {} },
      'k:{"port":53,"protocol":"UDP"}': { '.': {}, 'f:port': {}, 'f:protocol': {} },
    },
    'f:tags': { 'v:"x"': {}, 'v:"y"': {} },
    'f:order': {},
    'f:labels': { 'f:mine': {} },
    'f:selector': {},
    'f:open': { 'f:deep': { '.': {}, 'f:mine': {} } },
    'f:whole': {},
    'f:target': {},
  });

  const others = {
    ports: [{ port: 53, protocol: 'TCP' }, { port: 80 }],
    tags: ['y', 'z'],
    labels: { yours: '2' },
    open: { deep: { yours: '2' } },
  };
  const second = await applied('two', { spec: others }, { as: 'v1beta1' });
  t.is(second.apiVersion, 'example.com/v1beta1');
  t.deepEqual(second.metadata.managedFields.map((entry: Json) => `${entry.manager} ${entry.apiVersion}`).sort(), [
    'one example.com/v1',
    'two example.com/v1beta1',
  ]);
  t.deepEqual(second.spec.ports.map((one: Json) => `${one.port} ${one.protocol} ${one.name}`).sort(), [
    '53 TCP dns',
    '53 UDP undefined',
    '80 TCP undefined',
  ]);
  t.deepEqual([...second.spec.tags].sort(), ['x', 'y', 'z']);
  t.deepEqual(second.spec.labels, { mine: '1', yours: '2' });
  t.deepEqual(second.spec.open, { deep: { mine: '1', yours: '2' } });

  const taken = {
    ports: [{ port: 53, name: 'other' }],
    order: ['3'],
    selector: { more: 'b' },
    whole: { yours: '2' },
    target: { kind: 'k' },
  };
  t.deepEqual((await conflicts('two', { spec: taken })).sort(), [
    '.spec.order: conflict with "one"',
    '.spec.ports[port=53,protocol="TCP"].name: conflict with "one"',
    '.spec.selector: conflict with "one"',
    '.spec.target: conflict with "one"',
    '.spec.whole: conflict with "one"',
  ]);
  const forced = await applied('two', { spec: taken }, { as: 'v1beta1', query: '&force=true' });
  t.deepEqual(
    [forced.spec.order, forced.spec.selector, forced.spec.whole, forced.spec.target],
    [['3'], { more: 'b' }, { yours: '2' }, { kind: 'k' }],
  );
  t.deepEqual(forced.spec.tags, ['x', 'y'], 'what only the second manager had applied is removed');
  t.is((await conflicts('one', { spec: { order: ['1'] } }))[0], '.spec.order: conflict with "two"');

  const running = await applied('operator', { status: { phase: 'Ready' } }, { of: '/status' });
  t.deepEqual([running.status, running.spec], [{ phase: 'Ready' }, forced.spec]);
  t.deepEqual(
    owners(running, 'operator').map(({ subresource, fieldsV1 }: Json) => ({ subresource, fieldsV1 })),
    [{ subresource: 'status', fieldsV1: { 'f:status': { 'f:phase': {} } } }],
  );

  const left = await applied('one', {});
  const ports = [{ port: 53, protocol: 'TCP', name: 'other' }];
  t.deepEqual(left.spec, { size: 1, ...taken, ports }, 'what the first manager alone had applied is removed');
  t.deepEqual(owners(left, 'one'), []);

  const repeated = { spec: { ports: [{ port: 1 }, { port: 1, protocol: 'TCP' }] } };
  const [status, rejected] = await apply('one', repeated, { name: 'b' });
  t.is(status, 400);
  t.regex(rejected.message, /\.spec\.ports: duplicate entries for key \[port=1,protocol="TCP"\]/);
});
