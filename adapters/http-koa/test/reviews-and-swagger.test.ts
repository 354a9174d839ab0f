import { gunzipSync } from 'node:zlib';
import { decodeEnvelope, protobufDecoderOf } from '@keelson/core/internal';
import { SelfSubjectReview } from '@keelson/kinds';
import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { admin, call } from './support/serve.ts';

const swaggerProtobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

test('Swagger is served as JSON and, on request, as protobuf, each with its ETag', async (t) => {
  const { port } = await serveReal(t);
  const get = (headers: Readonly<Record<string, string>>) => call(port, 'GET', '/openapi/v2?timeout=32s', { headers });
  const json = await get({});
  t.is(json.status, 200);
  t.is(json.headers['content-type'], 'application/json');
  t.is(json.json.swagger, '2.0');
  t.true('/apis/extensions/v1beta1/namespaces/{namespace}/ingresses/{name}/status' in json.json.paths);

  // What kubectl sends; its own reader of media types fails on the at sign, so the response must not repeat it.
  const binary = await get({ accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' });
  t.is(binary.headers['content-type'], swaggerProtobuf);
  t.deepEqual([...binary.body.subarray(0, 5)], [0x0a, 3, 0x32, 0x2e, 0x30]);
  t.not(binary.headers.etag, json.headers.etag);
  const preferred = await get({ accept: `${swaggerProtobuf}, application/json` });
  t.true(preferred.body.equals(binary.body), 'the first of two media types has another document');

  const known = await get({ 'if-none-match': json.headers.etag as string });
  t.is(known.status, 304);
  t.is(known.body.length, 0);
  const zipped = await get({ 'accept-encoding': 'gzip' });
  t.is(zipped.headers['content-encoding'], 'gzip');
  t.true(gunzipSync(zipped.body).equals(json.body), 'the compressed document is different');
  t.is((await get({ accept: 'text/html' })).status, 406);
  t.is((await call(port, 'POST', '/openapi/v2')).status, 405);
});

test('the Swagger document follows kinds that are added and removed', async (t) => {
  const { port, registry } = await serveReal(t);
  const before = await call(port, 'GET', '/openapi/v2');
  const [kind] = registry.kinds().filter((candidate) => candidate.kind === 'Lease');
  if (kind === undefined) return t.fail('no Lease');
  registry.remove(kind);
  const after = await call(port, 'GET', '/openapi/v2');
  t.not(after.headers.etag, before.headers.etag);
  t.true('io.k8s.api.coordination.v1.Lease' in before.json.definitions);
  t.false('io.k8s.api.coordination.v1.Lease' in after.json.definitions);
});

const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

test('a review is answered with 201 and cannot be read, listed or deleted', async (t) => {
  const { port } = await serveReal(t);
  const spec = { user: 'bob', groups: ['system:masters'], resourceAttributes: { verb: 'get', resource: 'pods' } };
  const answer = await call(port, 'POST', reviews, { body: JSON.stringify({ spec }) });
  t.is(answer.status, 201);
  t.deepEqual(answer.json, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: {},
    spec,
    status: { allowed: true },
  });
  for (const [method, path] of [
    ['GET', reviews],
    ['GET', `${reviews}?watch=true`],
    ['GET', `${reviews}/x`],
    ['PUT', `${reviews}/x`],
    ['PATCH', `${reviews}/x`],
    ['DELETE', reviews],
    ['DELETE', `${reviews}/x`],
  ] as const) {
    const refused = await call(port, method, path, {
      body: '{}',
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    t.is(refused.status, 405, `${method} ${path}`);
    t.like(refused.json, { kind: 'Status', reason: 'MethodNotAllowed' });
  }
  const invalid = await call(port, 'POST', reviews, { body: '{"spec":{"user":"bob"}}' });
  t.is(invalid.status, 422);
  t.is(invalid.json.details.causes[0].field, 'spec.resourceAttributes');
});

test('a local review requires the namespace in its path, and the namespace need not exist', async (t) => {
  const { port } = await serveReal(t);
  const spec = { user: 'bob', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'gone' } };
  const path = (namespace: string) => `/apis/authorization.k8s.io/v1/namespaces/${namespace}/localsubjectaccessreviews`;
  const answer = await call(port, 'POST', path('gone'), { body: JSON.stringify({ spec }) });
  t.is(answer.status, 201);
  t.is(answer.json.status.allowed, false);
  t.is((await call(port, 'POST', path('other'), { body: JSON.stringify({ spec }) })).status, 422);
  const nowhere = await call(port, 'POST', '/apis/authorization.k8s.io/v1/localsubjectaccessreviews', {
    body: JSON.stringify({ spec }),
  });
  t.is(nowhere.status, 405);
});

test('reviews are accepted and returned in protobuf, with lists inside maps', async (t) => {
  const user = { ...admin, extra: { team: ['red', 'blue'], none: [] } };
  const { port } = await serveReal(t, { insecureUser: user });
  const headers = { accept: 'application/vnd.kubernetes.protobuf' };
  const answer = await call(port, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: '{}', headers });
  t.is(answer.status, 201);
  const envelope = decodeEnvelope(answer.body);
  t.is(envelope.kind, 'SelfSubjectReview');
  const decoded = protobufDecoderOf(SelfSubjectReview.schema)(envelope.raw) as { status: { userInfo: object } };
  t.deepEqual(decoded.status.userInfo, {
    username: 'admin',
    groups: [...admin.groups],
    extra: { team: ['red', 'blue'], none: [] },
  });
});
