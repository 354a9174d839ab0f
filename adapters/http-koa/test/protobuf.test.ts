import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { defineKind, type KindDefinition, type KubeObject, optional, type Schema, s } from '@keelson/core';
import {
  decodeEnvelope,
  decodeProtobufEvent,
  decoderOf,
  deleteOptionsSchema,
  encodeEnvelope,
  encodeProtobufObject,
  listSchemaOf,
  parseProtobufBody,
  protobufDecoderOf,
  statusSchema,
} from '@keelson/core/internal';
import { builtinKinds, ConfigMap, Deployment, ExtensionsV1beta1Deployment, Pod } from '@keelson/kinds';
import test from 'ava';
import { type RealPlane, serveReal } from './support/real-plane.ts';
import { call, open, type Reply, raw } from './support/serve.ts';

const protobuf = 'application/vnd.kubernetes.protobuf';
const both = `${protobuf},application/json`;
const maps = '/api/v1/namespaces/default/configmaps';

/** Sends a protobuf body and accepts a protobuf response, as typed Go clients do. */
function typed(plane: RealPlane, method: string, path: string, body?: Buffer, accept = both): Promise<Reply> {
  const headers = { accept, ...(body ? { 'content-type': protobuf } : {}) };
  return call(plane.port, method, path, { headers, ...(body ? { body } : {}) });
}

const bytesOf = (kind: KindDefinition, object: object): Buffer =>
  encodeProtobufObject(kind.schema, kind.apiVersion, kind.kind, object);

/** The object in a protobuf response. */
function read(
  reply: Reply,
  kind: { kind: string; apiVersion: string; schema: Schema<unknown> },
): Record<string, unknown> {
  if (reply.headers['content-type'] !== protobuf)
    throw new Error(`${reply.status} ${reply.headers['content-type']} ${reply.text}`);
  const value = parseProtobufBody(reply.body, kind);
  if (value['kind'] !== kind.kind) throw new Error(`${value['kind']} instead of ${kind.kind}`);
  return value;
}

const statusType = { kind: 'Status', apiVersion: 'v1', schema: statusSchema };
const completed = (kind: KindDefinition, object: unknown): unknown => decoderOf(kind.schema)(object).value;

test('bodies and responses use any combination of JSON, YAML and protobuf', async (t) => {
  const plane = await serveReal(t);
  const { port } = plane;
  const created = await typed(
    plane,
    'POST',
    maps,
    bytesOf(ConfigMap, { metadata: { name: 'a' }, data: { k: 'v' } }),
    'application/json',
  );
  t.is(created.status, 201);
  t.like(created.json, { kind: 'ConfigMap', apiVersion: 'v1', data: { k: 'v' }, metadata: { namespace: 'default' } });
  const second = await call(port, 'POST', maps, {
    body: '{"metadata":{"name":"b"},"data":{"k":"w"}}',
    headers: { accept: protobuf },
  });
  t.is(second.status, 201);
  t.like(read(second, ConfigMap), { data: { k: 'w' } });

  const got = await typed(plane, 'GET', `${maps}/a`);
  t.deepEqual(completed(ConfigMap, read(got, ConfigMap)), created.json);
  const changed = { ...(created.json as object), data: { k: 'x' } };
  const replaced = await typed(plane, 'PUT', `${maps}/a`, bytesOf(ConfigMap, changed));
  t.is(replaced.status, 200);
  t.like(read(replaced, ConfigMap), { data: { k: 'x' } });
  t.is((await typed(plane, 'PUT', `${maps}/a`, bytesOf(ConfigMap, changed))).status, 409);
  const patched = await call(port, 'PATCH', `${maps}/a`, {
    body: '{"data":{"k":"y"}}',
    headers: { 'content-type': 'application/merge-patch+json', accept: both },
  });
  t.like(read(patched, ConfigMap), { data: { k: 'y' } });
  t.regex(
    (await call(port, 'GET', `${maps}/a`, { headers: { accept: 'application/yaml' } })).text,
    /^data:\n {2}k: 'y'$/m,
  );
  t.is((await call(port, 'PATCH', `${maps}/a`, { body: got.body, headers: { 'content-type': protobuf } })).status, 415);
});

test('bodies of kubectl are stored, and its responses equal those of JSON clients', async (t) => {
  const plane = await serveReal(t);
  const file = new URL('../../../../packages/kinds/test/protobuf/fixtures/kubectl.json', import.meta.url);
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as {
    method: string;
    path: string;
    hex: string;
    command: string;
    json: KubeObject & { kind: string };
  }[];
  let count = 0;
  for (const { method, path, hex, command, json } of recorded) {
    if (method !== 'POST' || json.kind.startsWith('SelfSubject')) continue;
    const kind = builtinKinds.find((known) => known.kind === json.kind && known.apiVersion === json.apiVersion)!;
    const reply = await typed(
      plane,
      'POST',
      `${path}?fieldManager=kubectl-create&fieldValidation=Strict`,
      Buffer.from(hex, 'hex'),
    );
    t.is(reply.status, 201, command);
    t.is(reply.headers['warning'], undefined);
    const shown = await call(plane.port, 'GET', `${path}/${json.metadata?.name}`);
    t.deepEqual(completed(kind, read(reply, kind)), shown.json, command);
    count += 1;
  }
  t.is(count, 9);
});

test('lists contain the same objects as in JSON, in pages, compressed on request', async (t) => {
  const plane = await serveReal(t);
  for (let index = 0; index < 120; index += 1) {
    const data = { k: String(index), text: 'x'.repeat(3000) };
    await call(plane.port, 'POST', maps, {
      body: JSON.stringify({ metadata: { name: `m-${index}`, labels: { odd: String(index % 2) } }, data }),
    });
  }
  const listType = { kind: 'ConfigMapList', apiVersion: 'v1', schema: listSchemaOf(ConfigMap.schema) };
  const json = await call(plane.port, 'GET', maps);
  const reply = await typed(plane, 'GET', maps);
  const list = read(reply, listType) as { items: KubeObject[]; metadata: Record<string, unknown> };
  t.deepEqual(list.metadata, json.json.metadata);
  t.deepEqual(
    list.items,
    json.json.items.map(({ kind: _kind, apiVersion: _apiVersion, ...rest }: KubeObject) => rest),
  );
  const zipped = await call(plane.port, 'GET', maps, { headers: { accept: protobuf, 'accept-encoding': 'gzip' } });
  t.is(zipped.headers['content-encoding'], 'gzip');
  t.true(gunzipSync(zipped.body).equals(reply.body), 'the compressed list is different');

  const page = read(await typed(plane, 'GET', `${maps}?limit=50`), listType) as typeof list;
  t.is(page.items.length, 50);
  t.is(page.metadata['remainingItemCount'], 70);
  const next = read(
    await typed(plane, 'GET', `${maps}?limit=500&continue=${page.metadata['continue']}`),
    listType,
  ) as typeof list;
  t.is(next.items.length, 70);
  const odd = read(await typed(plane, 'GET', `${maps}?labelSelector=odd%3D1`), listType) as typeof list;
  t.is(odd.items.length, 60);
  const none = read(await typed(plane, 'GET', `${maps}?labelSelector=odd%3D2`), listType) as typeof list;
  t.is(none.items, undefined as never);
});

/** Events of a stream of frames. */
async function* frames(stream: AsyncIterable<Buffer>): AsyncGenerator<{ type: string; object: Buffer }> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
      const end = 4 + rest.readUInt32BE(0);
      yield decodeProtobufEvent(rest.subarray(4, end));
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) throw new Error('half a frame');
}

test('watch events are length-delimited envelopes with the same objects as in JSON', async (t) => {
  const plane = await serveReal(t);
  const first = (await call(plane.port, 'POST', maps, { body: '{"metadata":{"name":"a"},"data":{"k":"1"}}' })).json;
  const path = `${maps}?watch=true&resourceVersion=0&allowWatchBookmarks=true`;
  const response = await open(plane.port, 'GET', path, { headers: { accept: `${protobuf};stream=watch` } });
  t.is(response.headers['content-type'], `${protobuf};stream=watch`);
  const events = frames(response);
  const next = async () => {
    const { type, object } = (await events.next()).value as { type: string; object: Buffer };
    return { type, object: completed(ConfigMap, parseProtobufBody(object, ConfigMap)) };
  };
  t.deepEqual(await next(), { type: 'ADDED', object: first });
  const put = await call(plane.port, 'PUT', `${maps}/a`, { body: JSON.stringify({ ...first, data: { k: '2' } }) });
  t.deepEqual(await next(), { type: 'MODIFIED', object: put.json });
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      call(plane.port, 'POST', maps, { body: `{"metadata":{"name":"n${index}"}}` }),
    ),
  );
  const seen: unknown[] = [];
  for (let index = 0; index < many.length; index += 1) seen.push((await next()).object);
  const byVersion = (a: unknown, b: unknown) =>
    Number((a as KubeObject).metadata?.resourceVersion) - Number((b as KubeObject).metadata?.resourceVersion);
  t.deepEqual(seen, many.map((reply) => reply.json).sort(byVersion));
  await call(plane.port, 'DELETE', `${maps}/a`);
  t.is((await next()).type, 'DELETED');
  response.destroy();
});

test('watches end with a bookmark; HTTP/1.0 gets unchunked frames; an expired revision is an ERROR event', async (t) => {
  const plane = await serveReal(t);
  await call(plane.port, 'POST', maps, { body: '{"metadata":{"name":"a"}}' });
  const path = `${maps}?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1`;
  const text = await raw(plane.port, `GET ${path} HTTP/1.0\r\nHost: localhost\r\nAccept: ${both}\r\n\r\n`);
  const body = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4), 'latin1');
  const types: string[] = [];
  for await (const { type } of frames(
    (async function* () {
      yield body;
    })(),
  ))
    types.push(type);
  t.deepEqual(types, ['ADDED', 'BOOKMARK']);
  const initial = `${maps}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1`;
  const marks: (string | undefined)[] = [];
  for await (const { object } of frames(await open(plane.port, 'GET', initial, { headers: { accept: both } }))) {
    const { metadata } = parseProtobufBody(object, ConfigMap) as KubeObject;
    marks.push(metadata?.annotations?.['k8s.io/initial-events-end']);
    const blueprint = metadata?.annotations?.['kubernetes.io/initial-events-list-blueprint'];
    if (blueprint === undefined) continue;
    const { apiVersion, kind } = decodeEnvelope(Buffer.from(blueprint, 'base64'));
    t.deepEqual([apiVersion, kind], ['v1', 'ConfigMapList']);
    marks.push('blueprint');
  }
  t.deepEqual(marks.slice(1, 3), ['true', 'blueprint']);
});

test('errors are Status objects in protobuf', async (t) => {
  const plane = await serveReal(t);
  const missing = await typed(plane, 'GET', `${maps}/nobody`);
  t.is(missing.status, 404);
  t.like(read(missing, statusType), {
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'NotFound',
    code: 404,
    details: { name: 'nobody', kind: 'configmaps' },
  });
  const invalid = await typed(plane, 'POST', maps, bytesOf(ConfigMap, { metadata: { name: 'Not_A_Name' } }));
  t.is(invalid.status, 422);
  const { details } = read(invalid, statusType) as { details: { causes: { field: string }[] } };
  t.is(details.causes[0]?.field, 'metadata.name');
  t.is(
    (await typed(plane, 'GET', `${maps}/nobody`, undefined, `application/xml,${protobuf};q=0.5`)).headers[
      'content-type'
    ],
    protobuf,
  );
});

test('bodies that are not protobuf objects of the kind are rejected with 400', async (t) => {
  const plane = await serveReal(t);
  const good = bytesOf(ConfigMap, { metadata: { name: 'a' } });
  const cases: [what: string, body: Buffer, message: RegExp][] = [
    ['wrong prefix', Buffer.concat([Buffer.from('k8s\x01'), good.subarray(4)]), /expected prefix 6b387300/],
    ['JSON', Buffer.from('{"metadata":{"name":"a"}}'), /must be of type ConfigMap/],
    ['truncated', good.subarray(0, good.length - 8), /unrecognized/],
    ['garbage in the object', encodeEnvelope('v1', 'ConfigMap', Buffer.from('ffff', 'hex')), /unrecognized/],
    ['another kind', bytesOf(Pod, { metadata: { name: 'a' } }), /Pod in version "v1" cannot be handled as a ConfigMap/],
    ['an unknown kind', encodeEnvelope('v1', 'Boat', Buffer.alloc(0)), /no kind "Boat" is registered/],
    ['another version', encodeEnvelope('v2', 'ConfigMap', Buffer.alloc(0)), /does not match the expected API version/],
  ];
  for (const [what, body, message] of cases) {
    const reply = await typed(plane, 'POST', maps, body);
    t.is(reply.status, 400, what);
    t.regex(read(reply, statusType)['message'] as string, message, what);
  }
  t.is((await call(plane.port, 'POST', maps, { headers: { 'content-type': protobuf } })).status, 400);
  const open = encodeEnvelope('', '', decodeEnvelope(good).raw);
  t.is((await typed(plane, 'POST', maps, open)).status, 201);
});

test('DELETE accepts its options in protobuf', async (t) => {
  const plane = await serveReal(t);
  const pods = '/api/v1/namespaces/default/pods';
  const options = (value: object, version = 'v1') =>
    encodeProtobufObject(deleteOptionsSchema, version, 'DeleteOptions', value);
  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] } };
  t.is((await call(plane.port, 'POST', pods, { body: JSON.stringify(pod) })).status, 201);
  const wrong = await typed(plane, 'DELETE', `${pods}/p`, options({ preconditions: { uid: 'other' } }));
  t.is(wrong.status, 409);
  const graceful = await typed(plane, 'DELETE', `${pods}/p`, options({}, 'meta.k8s.io/v1'));
  t.is(graceful.status, 200);
  t.like(read(graceful, Pod), { metadata: { deletionGracePeriodSeconds: 30 } });
  t.is((await typed(plane, 'GET', `${pods}/p`)).status, 200);
  const now = await typed(plane, 'DELETE', `${pods}/p`, options({ gracePeriodSeconds: 0 }));
  t.is(now.status, 200);
  t.is((await typed(plane, 'GET', `${pods}/p`)).status, 404);
  for (const body of [
    Buffer.from('{}'),
    encodeEnvelope('v1', 'DeleteOptions', Buffer.of(0xff)),
    bytesOf(Pod, {}),
    options({}, 'x/v9'),
  ]) {
    t.is((await typed(plane, 'DELETE', `${pods}/p`, body)).status, 400);
  }
  t.is((await typed(plane, 'DELETE', `${pods}/p`, options({ propagationPolicy: 'Sideways' }))).status, 422);
});

test('subresources, and kinds with a shared storage, are served in protobuf', async (t) => {
  const plane = await serveReal(t);
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const deployment = {
    metadata: { name: 'd' },
    spec: { replicas: 0, selector: { matchLabels: { a: 'b' } }, template },
  };
  const path = '/apis/apps/v1/namespaces/default/deployments';
  const created = await typed(plane, 'POST', path, bytesOf(Deployment, deployment));
  t.is(created.status, 201);
  t.is((read(created, Deployment) as { spec: { replicas: number } }).spec.replicas, 0);

  const scaleKind = Deployment.subresources.find(({ name }) => name === 'scale') as { schema: Schema<unknown> };
  const scaleType = { kind: 'Scale', apiVersion: 'autoscaling/v1', schema: scaleKind.schema };
  const scale = read(await typed(plane, 'GET', `${path}/d/scale`), scaleType) as {
    spec: { replicas?: number };
    metadata: object;
  };
  t.is(scale.spec.replicas, undefined);
  const scaled = await typed(
    plane,
    'PUT',
    `${path}/d/scale`,
    encodeProtobufObject(scaleKind.schema, 'autoscaling/v1', 'Scale', { ...scale, spec: { replicas: 3 } }),
  );
  t.is(scaled.status, 200);
  t.is((read(scaled, scaleType) as typeof scale).spec.replicas, 3);

  const old = read(
    await typed(plane, 'GET', '/apis/extensions/v1beta1/namespaces/default/deployments/d'),
    ExtensionsV1beta1Deployment,
  );
  const json = await call(plane.port, 'GET', '/apis/extensions/v1beta1/namespaces/default/deployments/d');
  t.deepEqual(completed(ExtensionsV1beta1Deployment, old), json.json);
});

test('discovery documents are served in protobuf; other documents fall back to JSON', async (t) => {
  const plane = await serveReal(t);
  const address = s.message('Address', 'A.', {
    clientCIDR: optional(1, s.string(), 'C.'),
    serverAddress: optional(2, s.string(), 'A.'),
  });
  const raw = async (path: string, kind: string) => {
    const reply = await typed(plane, 'GET', path);
    t.is(reply.headers['content-type'], protobuf, path);
    const envelope = decodeEnvelope(reply.body);
    t.deepEqual([envelope.apiVersion, envelope.kind], ['v1', kind]);
    return envelope.raw;
  };
  const versions = s.message('Versions', 'V.', {
    versions: optional(1, s.list(s.string()), 'V.'),
    addresses: optional(2, s.list(address), 'A.'),
  });
  t.like(protobufDecoderOf(versions)(await raw('/api', 'APIVersions')), { versions: ['v1'] });
  t.true((await raw('/apis', 'APIGroupList')).includes('apps/v1'));
  t.true((await raw('/apis/apps', 'APIGroup')).includes('apps/v1'));
  const verbs = s.message('Verbs', 'V.', { items: optional(1, s.list(s.string()), 'I.') });
  const resource = s.message('Resource', 'R.', {
    name: optional(1, s.string(), 'N.'),
    verbs: optional(4, verbs, 'V.'),
  });
  const resources = s.message('Resources', 'R.', {
    groupVersion: optional(1, s.string(), 'G.'),
    resources: optional(2, s.list(resource), 'R.'),
  });
  const list = protobufDecoderOf(resources)(await raw('/apis/apps/v1', 'APIResourceList')) as {
    resources: { name: string; verbs: { items: string[] } }[];
  };
  const json = (await call(plane.port, 'GET', '/apis/apps/v1')).json as {
    resources: { name: string; verbs: string[] }[];
  };
  t.deepEqual(
    list.resources.map(({ name, verbs: { items } }) => [name, items]),
    json.resources.map(({ name, verbs: items }) => [name, items]),
  );
  t.is((await typed(plane, 'GET', '/version')).headers['content-type'], 'application/json');
  const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
  t.regex(String((await typed(plane, 'GET', '/apis', undefined, aggregated)).headers['content-type']), /apidiscovery/);
});

test('partial metadata is served in protobuf, tables only in JSON', async (t) => {
  const plane = await serveReal(t);
  await call(plane.port, 'POST', maps, { body: '{"metadata":{"name":"a"},"data":{"k":"v"}}' });
  const as = (kind: string, media: string) => `${media};as=${kind};g=meta.k8s.io;v=v1`;
  const one = await typed(
    plane,
    'GET',
    `${maps}/a`,
    undefined,
    `${as('PartialObjectMetadata', protobuf)},application/json`,
  );
  t.is(decodeEnvelope(one.body).kind, 'PartialObjectMetadata');
  const list = await typed(plane, 'GET', maps, undefined, as('PartialObjectMetadataList', protobuf));
  t.is(decodeEnvelope(list.body).kind, 'PartialObjectMetadataList');
  const table = await typed(
    plane,
    'GET',
    maps,
    undefined,
    `${as('Table', protobuf)},${as('Table', 'application/json')}`,
  );
  t.is(table.json.kind, 'Table');
  t.is((await typed(plane, 'GET', maps, undefined, as('Table', protobuf))).status, 406);
});

test('a kind without field numbers: 415 for bodies, JSON or 406 for responses, partial metadata in protobuf', async (t) => {
  const plane = await serveReal(t);
  const schema = s.message('example.Boat', 'A boat.', { spec: optional(undefined, s.any(), 'Anything.') });
  plane.registry.add(defineKind({ group: 'example.io', version: 'v1', kind: 'Boat', schema }));
  const boats = '/apis/example.io/v1/namespaces/default/boats';
  t.is((await call(plane.port, 'POST', boats, { body: '{"metadata":{"name":"a"},"spec":1}' })).status, 201);
  const refused = await typed(plane, 'POST', boats, encodeEnvelope('example.io/v1', 'Boat', Buffer.alloc(0)));
  t.is(refused.status, 415);
  t.is((await typed(plane, 'GET', `${boats}/a`)).json.spec, 1);
  const only = await typed(plane, 'GET', `${boats}/a`, undefined, protobuf);
  t.is(only.status, 406);
  t.like(read(only, statusType), { reason: 'NotAcceptable', code: 406 });
  const metadata = await typed(
    plane,
    'GET',
    `${boats}/a`,
    undefined,
    `${protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`,
  );
  t.is(decodeEnvelope(metadata.body).kind, 'PartialObjectMetadata');
});

test('a configured vendor replaces the media type of Kubernetes', async (t) => {
  const plane = await serveReal(t, { brand: { vendor: 'acme', metaGroup: 'meta.acme.io' } });
  const media = 'application/vnd.acme.protobuf';
  const body = bytesOf(ConfigMap, { metadata: { name: 'a' } });
  const reply = await call(plane.port, 'POST', maps, { body, headers: { 'content-type': media, accept: media } });
  t.is(reply.status, 201);
  t.is(reply.headers['content-type'], media);
  t.is(
    (await call(plane.port, 'GET', `${maps}/nobody`, { headers: { accept: media } })).headers['content-type'],
    media,
  );
  t.is((await call(plane.port, 'GET', '/api', { headers: { accept: media } })).headers['content-type'], media);
  t.is((await call(plane.port, 'POST', maps, { body, headers: { 'content-type': protobuf } })).status, 415);
});
