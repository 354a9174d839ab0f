import type { KubeObject } from '@keelson/core';
import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call, lines, open } from './support/serve.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const initial = '?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
const blueprintName = 'kubernetes.io/initial-events-list-blueprint';

test('Swagger is served at the paths that clients of 1.9 request, in the format that the path names', async (t) => {
  const { port } = await serveReal(t);
  const get = (path: string, accept: string) => call(port, 'GET', path, { headers: { accept } });
  const json = await get('/swagger.json', '*/*');
  t.is(json.status, 200);
  t.is(json.headers['content-type'], 'application/json');
  const whole = await get('/openapi/v2', 'application/json');
  t.true(json.body.equals(whole.body), '/swagger.json is another document than /openapi/v2');
  const binary = await get('/swagger-2.0.0.pb-v1', 'application/json');
  t.is(binary.status, 200);
  const wholeBinary = await get('/openapi/v2', 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
  t.true(binary.body.equals(wholeBinary.body), '/swagger-2.0.0.pb-v1 is another document than /openapi/v2');
  const { paths } = (await get('/', 'application/json')).json;
  for (const path of ['/swagger.json', '/swagger-2.0.0.pb-v1']) t.true(paths.includes(path));
});

test('responses of deprecated versions always have a Warning header, those of their successors never', async (t) => {
  const { port } = await serveReal(t);
  const ingress =
    '299 - "extensions/v1beta1 Ingress is deprecated in v1.14+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress"';
  const old = '/apis/extensions/v1beta1/namespaces/default/ingresses';
  for (const [method, path] of [
    ['GET', old],
    ['GET', `${old}/missing`],
    ['GET', `${old}/missing/status`],
    ['DELETE', old],
    ['GET', `${old}?watch=1&timeoutSeconds=1`],
  ] as const)
    t.is((await call(port, method, path)).headers['warning'], ingress, path);
  t.is(
    (await call(port, 'GET', '/apis/networking.k8s.io/v1/namespaces/default/ingresses')).headers['warning'],
    undefined,
  );
  t.regex(
    String((await call(port, 'GET', '/apis/extensions/v1beta1/deployments')).headers['warning']),
    /extensions\/v1beta1 Deployment is deprecated in v1\.8\+, unavailable in v1\.16\+; use apps\/v1 Deployment/,
  );
});

test('a review has no Table: 406 if Accept has no other clause, otherwise the review is returned', async (t) => {
  const { port } = await serveReal(t);
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const body = '{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}';
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const refused = await call(port, 'POST', path, { body, headers: { accept: table } });
  t.is(refused.status, 406);
  t.like(refused.json, { kind: 'Status', reason: 'NotAcceptable' });
  const answered = await call(port, 'POST', path, { body, headers: { accept: `${table},application/json` } });
  t.is(answered.json.kind, 'SelfSubjectAccessReview');
});

test('an action has no Table: 406 without effect if Accept has no other clause', async (t) => {
  const { port } = await serveReal(t);
  const path = '/apis/extensions/v1beta1/namespaces/default/deployments/missing/rollback';
  const body = '{"name":"missing","rollbackTo":{"revision":1}}';
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  t.is((await call(port, 'POST', path, { body, headers: { accept: table } })).status, 406);
  t.is((await call(port, 'POST', path, { body, headers: { accept: `${table},application/json` } })).status, 404);
});

test('the bookmark that ends the initial events has an empty list in the representation of the request', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', maps, { body: '{"metadata":{"name":"a"}}' });
  const blueprintOf = async (path: string, accept: string) => {
    const events = lines(await open(port, 'GET', `${path}${initial}`, { headers: { accept } }));
    for await (const { type, object } of events) {
      const { annotations, resourceVersion } = (object as unknown as KubeObject).metadata ?? {};
      if (type !== 'BOOKMARK') continue;
      t.is(annotations?.['k8s.io/initial-events-end'], 'true');
      const list = JSON.parse(Buffer.from(annotations?.[blueprintName] ?? '', 'base64').toString());
      t.is(list.metadata.resourceVersion, resourceVersion);
      return { kind: list.kind, apiVersion: list.apiVersion, items: list.items };
    }
    return undefined;
  };
  t.deepEqual(await blueprintOf(maps, 'application/json'), { kind: 'ConfigMapList', apiVersion: 'v1', items: [] });
  t.deepEqual(await blueprintOf(maps, 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'), {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    items: [],
  });
  const twin = '/apis/extensions/v1beta1/namespaces/default/deployments';
  t.deepEqual(await blueprintOf(twin, 'application/json'), {
    kind: 'DeploymentList',
    apiVersion: 'extensions/v1beta1',
    items: [],
  });
});

test('deleting a collection returns the list of its objects, in the representation of the request', async (t) => {
  const { port } = await serveReal(t);
  const fill = async () => {
    for (const name of ['a', 'b']) await call(port, 'POST', maps, { body: JSON.stringify({ metadata: { name } }) });
  };
  await fill();
  const json = (await call(port, 'DELETE', `${maps}?fieldSelector=metadata.name!=b`)).json;
  t.like(json, { kind: 'ConfigMapList', apiVersion: 'v1' });
  t.deepEqual(
    json.items.map(({ metadata }: KubeObject) => metadata?.name),
    ['a'],
  );
  await fill();
  const table = await call(port, 'DELETE', maps, {
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
  });
  t.is(table.json.kind, 'Table');
  t.is(table.json.rows.length, 2);
  t.deepEqual((await call(port, 'GET', maps)).json.items, []);
});

test('numbers outside of the range of their type are rejected without effect', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', maps, { body: '{"metadata":{"name":"a"}}' });
  for (const limit of ['2147483648', '-2147483649', '99999999999'])
    t.like((await call(port, 'GET', `${maps}?limit=${limit}`)).json, { code: 400, reason: 'BadRequest' }, limit);
  t.is((await call(port, 'GET', `${maps}?limit=2147483647`)).status, 200);
  for (const send of [
    () => call(port, 'DELETE', `${maps}/a?gracePeriodSeconds=2147483648`),
    () => call(port, 'DELETE', `${maps}/a`, { body: '{"gracePeriodSeconds":2147483648}' }),
    () => call(port, 'DELETE', maps, { body: '{"gracePeriodSeconds":2147483648}' }),
  ]) {
    const { json } = await send();
    t.like(json, { code: 422, reason: 'Invalid' });
    t.is(json.details.causes[0].field, 'gracePeriodSeconds');
  }
  t.is((await call(port, 'GET', `${maps}/a`)).status, 200);
});

test('includeUninitialized is accepted and has no effect', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', maps, { body: '{"metadata":{"name":"a"}}' });
  for (const value of ['true', 'false', ''])
    t.is((await call(port, 'GET', `${maps}?includeUninitialized=${value}`)).json.items.length, 1);
});
