import type { DeleteParameters, SelectParameters, WriteParameters } from '@keelson/core/internal';
import test from 'ava';
import { acceptsGzip } from '../src/exchange/send.ts';
import { configMap, FakeRegistry, namespace, stored, widget } from './support/fake-registry.ts';
import { type CallOptions, call, serve } from './support/serve.ts';

const all = '/api/v1/namespaces/default/configmaps';
const one = `${all}/a`;

function registryWithOne(): FakeRegistry {
  const registry = new FakeRegistry();
  registry.service(configMap).objects.set('a', stored(configMap, 'a', 5));
  registry.service(namespace).objects.set('n', stored(namespace, 'n', 6));
  registry.service(widget).objects.set('w', stored(widget, 'w', 7));
  return registry;
}

test('list parameters are parsed by the rules of the API and passed to the service', async (t) => {
  const registry = registryWithOne();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  const cases: [query: string, expected: SelectParameters][] = [
    ['', { resourceVersion: '' }],
    ['?limit=500&includeUninitialized=true&unknown=1', { resourceVersion: '', limit: 500 }],
    ['?limit=0&continue=&labelSelector=', { resourceVersion: '' }],
    ['?limit=-3', { resourceVersion: '' }],
    ['?limit=1&limit=2', { resourceVersion: '', limit: 1 }],
    [
      '?labelSelector=a%3Db,c+in+(d)&fieldSelector=metadata.name%3Da',
      { resourceVersion: '', labelSelector: 'a=b,c in (d)', fieldSelector: 'metadata.name=a' },
    ],
    [
      '?resourceVersion=0&resourceVersionMatch=NotOlderThan&continue=tok',
      { resourceVersion: '0', resourceVersionMatch: 'NotOlderThan', continue: 'tok' },
    ],
    [
      '?allowWatchBookmarks=FALSE&sendInitialEvents',
      { resourceVersion: '', allowWatchBookmarks: false, sendInitialEvents: true },
    ],
    ['?watch=false&limit=7', { resourceVersion: '', limit: 7 }],
  ];
  for (const [query, expected] of cases) {
    service.calls.length = 0;
    const reply = await call(port, 'GET', `${all}${query}`);
    t.is(reply.status, 200, query);
    t.is(service.calls[0]?.operation, 'list');
    t.deepEqual(service.calls[0]?.args[2], expected, query);
  }
  for (const query of [
    'limit=x',
    'limit=1.5',
    'limit=1e3',
    'limit=0x10',
    'timeoutSeconds=ten',
    'limit=99999999999999999999',
  ]) {
    const reply = await call(port, 'GET', `${all}?${query}`);
    t.is(reply.status, 400, query);
    t.is(reply.json.reason, 'BadRequest');
  }
});

test('write parameters: defaults, the first of several values, and 422 for unknown values', async (t) => {
  const registry = registryWithOne();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  const good: [query: string, expected: WriteParameters][] = [
    ['', { dryRun: false }],
    [
      '?dryRun=All&fieldManager=kubectl-create&fieldValidation=Strict',
      { dryRun: true, fieldManager: 'kubectl-create', fieldValidation: 'Strict' },
    ],
    ['?dryRun=All&dryRun=All', { dryRun: true }],
    ['?dryRun=&fieldValidation=Ignore&fieldManager=', { dryRun: false, fieldValidation: 'Ignore' }],
    [`?fieldManager=${'m'.repeat(128)}`, { dryRun: false, fieldManager: 'm'.repeat(128) }],
  ];
  for (const [query, expected] of good) {
    service.calls.length = 0;
    t.is((await call(port, 'POST', `${all}${query}`, { body: '{}' })).status, 201, query);
    t.deepEqual(service.calls[0]?.args[3], expected, query);
  }
  const bad: [query: string, field: string][] = [
    ['dryRun=true', 'dryRun'],
    ['dryRun=All&dryRun=Some', 'dryRun'],
    [`fieldManager=${'m'.repeat(129)}`, 'fieldManager'],
    ['fieldManager=a%07b', 'fieldManager'],
    ['fieldValidation=strict', 'fieldValidation'],
  ];
  for (const [query, field] of bad) {
    const reply = await call(port, 'PUT', `${one}?${query}`, { body: '{}' });
    t.is(reply.status, 422, query);
    t.like(reply.json, { reason: 'Invalid', details: { kind: 'UpdateOptions', group: 'meta.k8s.io' } });
    t.is(reply.json.details.causes[0].field, field);
  }
  const forced = await call(port, 'PATCH', `${one}?force=true`, {
    body: '{}',
    headers: { 'content-type': 'application/merge-patch+json' },
  });
  t.is(forced.status, 422);
  t.is(forced.json.details.kind, 'PatchOptions');
});

test('DELETE reads its options from a JSON or YAML body, and from the query only without a body', async (t) => {
  const registry = registryWithOne();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  const yaml = { 'content-type': 'application/yaml' };
  const good: [query: string, options: CallOptions, expected: DeleteParameters][] = [
    ['', {}, { dryRun: false }],
    [
      '?gracePeriodSeconds=5&propagationPolicy=Foreground&uid=u&resourceVersion=9&dryRun=All',
      {},
      { dryRun: true, gracePeriodSeconds: 5, propagationPolicy: 'Foreground', uid: 'u', resourceVersion: '9' },
    ],
    ['?orphanDependents=false', {}, { dryRun: false, orphanDependents: false }],
    ['?orphanDependents', {}, { dryRun: false, orphanDependents: true }],
    ['?gracePeriodSeconds=5&dryRun=All', { body: '{}' }, { dryRun: false }],
    [
      '',
      {
        body: '{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background","gracePeriodSeconds":0,"preconditions":{"uid":"u","resourceVersion":"7"},"dryRun":["All"],"unknown":1}',
      },
      { dryRun: true, gracePeriodSeconds: 0, propagationPolicy: 'Background', uid: 'u', resourceVersion: '7' },
    ],
    ['', { body: '{"apiVersion":"meta.k8s.io/v1","orphanDependents":null,"preconditions":null}' }, { dryRun: false }],
    ['', { body: 'propagationPolicy: Orphan\n', headers: yaml }, { dryRun: false, propagationPolicy: 'Orphan' }],
  ];
  for (const [query, options, expected] of good) {
    service.calls.length = 0;
    const reply = await call(port, 'DELETE', `${one}${query}`, options);
    t.is(reply.status, 200, `${query} ${options.body}`);
    t.deepEqual(service.calls[0]?.args[2], expected, `${query} ${options.body}`);
  }
  const bad: [query: string, options: CallOptions, status: number][] = [
    ['?gracePeriodSeconds=soon', {}, 400],
    ['?propagationPolicy=Never', {}, 422],
    ['?propagationPolicy=Orphan&orphanDependents=true', {}, 422],
    ['?dryRun=Some', {}, 422],
    ['', { body: '{' }, 400],
    ['', { body: '[]' }, 400],
    ['', { body: '"DeleteOptions"' }, 400],
    ['', { body: '{"kind":"Pod"}' }, 400],
    ['', { body: '{"kind":"DeleteOptions","apiVersion":"apps/v1"}' }, 400],
    ['', { body: '{"gracePeriodSeconds":"5"}' }, 400],
    ['', { body: '{"gracePeriodSeconds":1.5}' }, 400],
    ['', { body: '{"preconditions":{"uid":7}}' }, 400],
    ['', { body: '{"propagationPolicy":"Never"}' }, 422],
    ['', { body: '{"dryRun":["Some"]}' }, 422],
    ['', { body: '{}', headers: { 'content-type': 'text/plain' } }, 415],
    ['', { body: 'a: [', headers: yaml }, 400],
  ];
  service.calls.length = 0;
  for (const [query, options, status] of bad) {
    t.is((await call(port, 'DELETE', `${one}${query}`, options)).status, status, `${query} ${options.body}`);
  }
  t.is(service.calls.length, 0);
  await call(port, 'DELETE', `${all}?labelSelector=a&limit=3`, { body: '{"gracePeriodSeconds":1}' });
  t.deepEqual(service.calls[0]?.args.slice(1), [
    { namespace: 'default' },
    { dryRun: false, gracePeriodSeconds: 1 },
    { resourceVersion: '', labelSelector: 'a', limit: 3 },
  ]);
  // Of a collection the version is that of the list, not a precondition of each object.
  await call(port, 'DELETE', `${all}?resourceVersion=0&propagationPolicy=Orphan`);
  t.deepEqual(service.calls[1]?.args.slice(2), [
    { dryRun: false, propagationPolicy: 'Orphan' },
    { resourceVersion: '0' },
  ]);
});

test('a body without Content-Type is JSON, parameters of the type are ignored, and unknown types are 415', async (t) => {
  const registry = registryWithOne();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  const types: [contentType: string | undefined, format: string | undefined][] = [
    [undefined, 'json'],
    ['application/json', 'json'],
    ['application/json; charset=utf-8', 'json'],
    ['Application/JSON;x=y', 'json'],
    ['application/yaml', 'yaml'],
    ['text/plain', undefined],
    ['application/x-www-form-urlencoded', undefined],
    ['application/vnd.kubernetes.protobuf', 'protobuf'],
    ['application/vnd.acme.protobuf', undefined],
    ['application/merge-patch+json', undefined],
  ];
  for (const [contentType, format] of types) {
    service.calls.length = 0;
    const reply = await call(port, 'PUT', one, {
      body: '{"a":1}',
      headers: contentType ? { 'content-type': contentType } : {},
    });
    t.is(reply.status, format === undefined ? 415 : 200, contentType);
    if (format === undefined) {
      t.is(reply.json.reason, 'UnsupportedMediaType');
      t.is(
        reply.json.message,
        'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
      );
    } else t.like(service.calls[0]?.args[2] as object, { format, bytes: Buffer.from('{"a":1}') });
  }
});

test('the type of a patch is checked first, and an unknown one is 415', async (t) => {
  const registry = registryWithOne();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  for (const [type, media] of [
    ['json', 'application/json-patch+json'],
    ['merge', 'application/merge-patch+json; charset=utf-8'],
    ['strategic', 'application/strategic-merge-patch+json'],
    ['apply', 'application/apply-patch+yaml'],
  ]) {
    service.calls.length = 0;
    const reply = await call(port, 'PATCH', one, { body: '{}', headers: { 'content-type': media as string } });
    t.is(reply.status, 200);
    t.like(service.calls[0]?.args[2] as object, { type });
  }
  for (const media of ['application/apply-patch+cbor', 'application/json', undefined]) {
    const headers = { accept: 'image/png', ...(media ? { 'content-type': media } : {}) };
    const reply = await call(port, 'PATCH', `${all}/missing?dryRun=x`, { body: '{}', headers });
    t.is(reply.status, 415, media);
    t.true(reply.text.includes('application/strategic-merge-patch+json'));
  }
});

test('subresources are served by operations of their own', async (t) => {
  const registry = registryWithOne();
  const service = registry.service(widget);
  const { port } = await serve(t, { registry });
  const w = '/apis/test.io/v1/namespaces/default/widgets/w';
  t.is((await call(port, 'GET', `${w}/status`)).status, 200);
  t.is((await call(port, 'PUT', `${w}/status?dryRun=All`, { body: '{}' })).status, 200);
  t.is(
    (
      await call(port, 'PATCH', `${w}/status`, {
        body: '{}',
        headers: { 'content-type': 'application/merge-patch+json' },
      })
    ).status,
    200,
  );
  t.is((await call(port, 'POST', `${w}/rollback`, { body: '{}' })).status, 201);
  t.deepEqual(
    service.calls.map((c) => c.operation),
    ['getSubresource', 'updateSubresource', 'patchSubresource', 'createSubresource'],
  );
  t.deepEqual(service.calls[1]?.args[1], { namespace: 'default', name: 'w' });
  t.is((service.calls[1]!.args[2] as { name: string }).name, 'status');
});

test('reads pass export, exact and resourceVersion; cluster-scoped targets have no namespace', async (t) => {
  const registry = registryWithOne();
  const { port } = await serve(t, { registry });
  await call(port, 'GET', `${one}?export=true&exact=1&resourceVersion=0`);
  t.deepEqual(registry.service(configMap).calls[0]?.args[2], { export: true, exact: true, resourceVersion: '0' });
  await call(port, 'GET', '/api/v1/namespaces/n');
  t.deepEqual(registry.service(namespace).calls[0]?.args.slice(1), [
    { name: 'n' },
    { export: false, exact: false, resourceVersion: '' },
  ]);
  await call(port, 'GET', '/api/v1/watch/namespaces/n?timeoutSeconds=1');
  t.deepEqual(registry.service(namespace).calls[1]?.args[1], { name: 'n' });
});

test('Accept-Encoding is parsed by its grammar', (t) => {
  for (const yes of ['gzip', 'deflate, gzip;q=0.5', '*', 'GZIP', 'br;q=1.0, gzip;q=1']) t.true(acceptsGzip(yes), yes);
  for (const no of [undefined, '', 'identity', 'gzip;q=0', 'gzip; q=0.0', '*, gzip;q=0', 'br'])
    t.false(acceptsGzip(no), String(no));
});
