import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { type KubeObject, StorageError, statusErrors } from '@keelson/core';
import { parseYaml, toYaml } from '@keelson/core/internal';
import test from 'ava';
import { configMap, event, FakeRegistry, stored } from './support/fake-registry.ts';
import { serveReal } from './support/real-plane.ts';
import { call, lines, open, type Reply, raw, serve } from './support/serve.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const yaml = 'application/yaml';
const protobuf = 'application/vnd.kubernetes.protobuf';
const inYaml = { accept: yaml, 'content-type': yaml };

/** The content of a YAML response. */
function read(reply: Reply): Record<string, never> {
  if (reply.headers['content-type'] !== yaml)
    throw new Error(`${reply.status} ${reply.headers['content-type']} ${reply.text}`);
  return parseYaml(reply.body).value as Record<string, never>;
}

/** Documents of a YAML stream, each as soon as it is complete. */
async function* documents(response: IncomingMessage): AsyncGenerator<{ type: string; object: KubeObject }> {
  let rest = '';
  for await (const chunk of response) {
    rest += String(chunk);
    for (let at = rest.indexOf('\n...\n'); at !== -1; at = rest.indexOf('\n...\n')) {
      if (!rest.startsWith('---\n')) throw new Error(`not the start of a document: ${rest.slice(0, 20)}`);
      yield parseYaml(Buffer.from(rest.slice(4, at + 1))).value as { type: string; object: KubeObject };
      rest = rest.slice(at + 5);
    }
  }
  if (rest !== '') throw new Error(`half a document: ${rest}`);
}

async function next<T>(events: AsyncGenerator<T>): Promise<T> {
  const { value, done } = await events.next();
  if (done) throw new Error('the stream has ended');
  return value as T;
}

test('YAML is accepted and returned: bodies, responses, delete options, errors', async (t) => {
  const { port } = await serveReal(t);
  const send = (method: string, path: string, body?: unknown) =>
    call(port, method, path, { headers: inYaml, ...(body === undefined ? {} : { body: toYaml(body) }) });
  const data = { yes: 'no', number: '012', lines: 'a\n  b\n---\n...\n', mark: '\u{1f600} # : ', empty: '' };
  const created = await send('POST', maps, { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, data });
  t.is(created.status, 201);
  t.deepEqual(read(created)['data'], data as never);
  const json = (await call(port, 'GET', `${maps}/a`)).json;
  t.deepEqual(read(created), json);
  t.deepEqual(read(await send('GET', `${maps}/a`)), json);

  const replaced = await send('PUT', `${maps}/a`, { ...json, data: { k: 'v' } });
  t.is(replaced.status, 200);
  t.deepEqual(read(replaced)['data'], { k: 'v' } as never);
  const stale = await send('PUT', `${maps}/a`, { ...json, data: { k: 'w' } });
  t.is(stale.status, 409);
  t.like(read(stale), { kind: 'Status', reason: 'Conflict' });
  const patched = await call(port, 'PATCH', `${maps}/a`, {
    headers: { accept: yaml, 'content-type': 'application/merge-patch+json' },
    body: '{"data":{"k":"x"}}',
  });
  t.deepEqual(read(patched)['data'], { k: 'x' } as never);

  const list = read(await send('GET', `${maps}?limit=1`));
  t.deepEqual(list, (await call(port, 'GET', `${maps}?limit=1`)).json);
  const refused = await send('DELETE', `${maps}/a`, { preconditions: { uid: 'another' } });
  t.is(refused.status, 409);
  t.is((await call(port, 'DELETE', `${maps}/a`, { headers: inYaml, body: 'preconditions: [' })).status, 400);
  const deleted = await send('DELETE', `${maps}/a`, {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    propagationPolicy: 'Background',
  });
  t.is(deleted.status, 200);
  t.like(read(deleted), { kind: 'Status', status: 'Success' });
  t.like(read(await send('GET', `${maps}/a`)), { kind: 'Status', code: 404 });
  t.is((await call(port, 'POST', maps, { headers: { 'content-type': yaml }, body: 'a: b\n---\nc: d\n' })).status, 400);
});

for (const [how, path, accept] of [
  ['the parameter', `${maps}?watch=1&`, yaml],
  ['the path', '/api/v1/watch/namespaces/default/configmaps?', `${yaml};stream=watch`],
  ['the path of one object', `/api/v1/watch/namespaces/default/configmaps/a?`, `text/html, ${yaml};stream=watch;q=0.5`],
]) {
  test(`a YAML watch by ${how} sends one document per event, immediately, equal to the JSON watch`, async (t) => {
    const { port } = await serveReal(t);
    await call(port, 'POST', maps, { body: '{"metadata":{"name":"a"},"data":{"text":"1\\n...\\n"}}' });
    const query = `${path}resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=5`;
    const response = await open(port, 'GET', query, {
      headers: { accept: accept as string, 'accept-encoding': 'gzip' },
    });
    t.is(response.headers['content-type'], yaml);
    t.is(response.headers['transfer-encoding'], 'chunked');
    t.is(response.headers['content-encoding'], undefined);
    const shown = documents(response);
    const expected = lines(await open(port, 'GET', query));
    const types: string[] = [];
    // Every event is read before the next one happens.
    for (const change of [
      async () => {},
      () => call(port, 'PUT', `${maps}/a`, { body: '{"metadata":{"name":"a"},"data":{"text":"2"}}' }),
      () => call(port, 'DELETE', `${maps}/a`),
      async () => {},
    ]) {
      await change();
      const [document, line] = [await next(shown), await next(expected)];
      t.deepEqual(document, line as never);
      types.push(document.type);
    }
    t.deepEqual(types, ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);
    t.true((await shown.next()).done);
  });
}

test('YAML watches send tables, metadata and initial events', async (t) => {
  const { port } = await serveReal(t);
  for (const name of ['a', 'b']) await call(port, 'POST', maps, { body: `{"metadata":{"name":"${name}"}}` });
  const watch = async (as: string, query: string) => {
    const seen: { type: string; object: KubeObject }[] = [];
    const accept = as === '' ? yaml : `${yaml};as=${as};g=meta.k8s.io;v=v1`;
    const response = await open(port, 'GET', `${maps}?watch=1&timeoutSeconds=1&${query}`, { headers: { accept } });
    for await (const document of documents(response)) seen.push(document);
    return seen;
  };
  const tables = await watch('Table', 'resourceVersion=0');
  t.deepEqual(
    tables.map(({ object }) => (object as unknown as { columnDefinitions: unknown[] }).columnDefinitions.length > 0),
    [true, false],
  );
  const partial = await watch('PartialObjectMetadata', 'resourceVersion=0');
  t.deepEqual(
    partial.map(({ object }) => [object.kind, object.metadata?.name]),
    [
      ['PartialObjectMetadata', 'a'],
      ['PartialObjectMetadata', 'b'],
    ],
  );
  const initial = await watch('', 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true');
  t.deepEqual(
    initial.slice(0, 3).map(({ type }) => type),
    ['ADDED', 'ADDED', 'BOOKMARK'],
  );
  t.is(initial[2]?.object.metadata?.annotations?.['k8s.io/initial-events-end'], 'true');
});

test('a YAML watch that fails ends with an ERROR document, also before its first event; HTTP/1.0 gets no chunks', async (t) => {
  const registry = new FakeRegistry();
  const service = registry.service(configMap);
  const { port } = await serve(t, { registry });
  const response = await open(port, 'GET', `${maps}?watch=1`, { headers: { accept: yaml } });
  const shown = documents(response);
  service.watches[0]?.push(event('ADDED', stored(configMap, 'a', 1)));
  t.is((await next(shown)).type, 'ADDED');
  service.watches[0]?.fail(new StorageError('Compacted', 'gone'));
  t.like(await next(shown), { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
  t.true((await shown.next()).done);

  service.on.watch = async () => {
    throw statusErrors.expired('too old resource version: 1 (5)');
  };
  const old = await raw(
    port,
    `GET ${maps}?watch=1&resourceVersion=1 HTTP/1.0\r\nHost: localhost\r\nAccept: ${yaml}\r\n\r\n`,
  );
  t.regex(old, /^HTTP\/1\.1 200 /);
  t.regex(old, /\r\n\r\n---\ntype: ERROR\nobject:\n {2}kind: Status\n[\s\S]*\n\.\.\.\n$/);
});

test('Accept is negotiated with qualities, wildcards, parameters, charsets and unsupported clauses', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', maps, { body: '{"metadata":{"name":"a"}}' });
  const table = 'as=Table;g=meta.k8s.io;v=v1beta1';
  const cases: [accept: string | undefined, type: string, kind?: string][] = [
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    ['application/json;charset=utf-8', 'application/json'],
    ['Application/JSON; Charset="UTF-8"', 'application/json'],
    ['application/yaml;charset=utf-8', yaml],
    ['application/json;q=0.1, application/yaml;q=0.2', yaml],
    [`${protobuf}, application/json`, protobuf],
    [`${protobuf};q=0.2, application/json;q=0.8`, 'application/json'],
    ['text/html, */*;q=0.1', 'application/json'],
    ['text/html;q=1, application/yaml;q=0.01, application/json;q=0', yaml],
    [`application/json;${table}, application/json`, 'application/json', 'Table'],
    [`application/json;as=Table;g=meta.k8s.io;v=v7, application/json`, 'application/json', 'ConfigMapList'],
    [`${protobuf};${table}, application/json;${table}`, 'application/json', 'Table'],
    [`${yaml};${table}`, yaml],
    ['application/json;stream=watch, application/yaml', yaml],
  ];
  for (const [accept, type, kind] of cases) {
    const reply = await call(port, 'GET', maps, { headers: accept === undefined ? {} : { accept } });
    t.is(reply.status, 200, accept);
    t.is(reply.headers['content-type'], type, accept);
    if (kind !== undefined) t.is(reply.json.kind, kind, accept);
  }
  for (const accept of [
    'text/html',
    'image/*',
    `${protobuf};${table}`,
    'application/json;stream=tail',
    '*/*;q=0',
    'text',
  ]) {
    const reply = await call(port, 'GET', maps, { headers: { accept } });
    t.is(reply.status, 406, accept);
    const named = /accept/.test(reply.text) && /application\/json, application\/yaml/.test(reply.text);
    t.true(named || reply.headers['content-type'] === protobuf, accept);
  }
  const streams = await call(port, 'GET', `${maps}?watch=1`, { headers: { accept: 'text/html' } });
  t.is(streams.status, 406);
  t.regex(
    streams.json.message,
    /application\/json;stream=watch, application\/yaml;stream=watch, application\/vnd\.kubernetes\.protobuf;stream=watch/,
  );
});

test('Content-Type: charset and letter case are tolerated, JSON is the default, others are 415 in the requested format', async (t) => {
  const { port } = await serveReal(t);
  const post = (name: string, headers: Record<string, string>) =>
    call(port, 'POST', maps, { headers, body: `{"metadata":{"name":"${name}"}}` });
  t.is((await post('a', {})).status, 201);
  t.is((await post('b', { 'content-type': 'application/json; charset=utf-8' })).status, 201);
  t.is((await post('c', { 'content-type': 'APPLICATION/JSON;charset="UTF-8"' })).status, 201);
  t.is((await post('d', { 'content-type': 'application/yaml; charset=utf-8' })).status, 201);
  for (const type of [
    'text/plain',
    'application/xml',
    'application/x-www-form-urlencoded',
    'application/vnd.acme.protobuf',
  ]) {
    const reply = await post('e', { 'content-type': type, accept: yaml });
    t.is(reply.status, 415, type);
    t.like(read(reply), { reason: 'UnsupportedMediaType', code: 415 });
  }
  const patch = await call(port, 'PATCH', `${maps}/a`, {
    headers: { 'content-type': 'application/merge-patch+json; charset=UTF-8' },
    body: '{"data":{"k":"v"}}',
  });
  t.is(patch.status, 200);
});

test('gzip: responses beyond 128 KiB on request, in every format; never smaller ones, HEAD or watches', async (t) => {
  const { port } = await serveReal(t);
  const text = 'x'.repeat(131_072);
  await call(port, 'POST', maps, { body: JSON.stringify({ metadata: { name: 'big' }, data: { text } }) });
  await call(port, 'POST', maps, { body: '{"metadata":{"name":"small"}}' });
  for (const accept of ['application/json', yaml, protobuf]) {
    for (const path of [`${maps}/big`, maps]) {
      const plain = await call(port, 'GET', path, { headers: { accept } });
      t.is(plain.headers['content-encoding'], undefined);
      t.is(plain.headers.vary, 'Accept-Encoding', `${accept} ${path}`);
      const zipped = await call(port, 'GET', path, { headers: { accept, 'accept-encoding': 'br, gzip;q=0.5' } });
      t.is(zipped.headers['content-encoding'], 'gzip', `${accept} ${path}`);
      t.is(zipped.headers.vary, 'Accept-Encoding');
      t.true(gunzipSync(zipped.body).equals(plain.body), `${accept} ${path}: the compressed answer is another one`);
      const refused = await call(port, 'GET', path, { headers: { accept, 'accept-encoding': 'gzip;q=0, *;q=0' } });
      t.is(refused.headers['content-encoding'], undefined);
      const head = await call(port, 'HEAD', path, { headers: { accept, 'accept-encoding': 'gzip' } });
      t.is(head.status, 200);
      t.is(head.headers['content-type'], accept);
      t.is(head.headers['content-encoding'], undefined);
      t.is(head.body.length, 0);
    }
    const small = await call(port, 'GET', `${maps}/small`, { headers: { accept, 'accept-encoding': 'gzip' } });
    t.is(small.headers['content-encoding'], undefined);
    t.is(small.headers.vary, undefined);
    const written = await call(port, 'PATCH', `${maps}/big`, {
      headers: { accept, 'accept-encoding': 'gzip', 'content-type': 'application/merge-patch+json' },
      body: '{"metadata":{"labels":{"a":"b"}}}',
    });
    t.is(written.headers['content-encoding'], 'gzip');
    const watch = await call(port, 'GET', `${maps}?watch=1&resourceVersion=0&timeoutSeconds=1`, {
      headers: { accept, 'accept-encoding': 'gzip' },
    });
    t.is(watch.headers['content-encoding'], undefined);
    t.true(watch.body.includes(text));
  }
});

test('HEAD returns the status and headers of GET, without its body', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', maps, { body: '{"metadata":{"name":"a"}}' });
  for (const path of [
    `${maps}/a`,
    maps,
    `${maps}/none`,
    '/api',
    '/api/v1',
    '/apis/apps/v1/',
    '/version/',
    '/nothing',
  ]) {
    for (const accept of ['application/json', yaml, protobuf]) {
      const headers = { accept };
      const [get, head] = [await call(port, 'GET', path, { headers }), await call(port, 'HEAD', path, { headers })];
      t.is(head.status, get.status, path);
      t.is(head.headers['content-type'], get.headers['content-type'], path);
      // The length of a list need not be known before it is made.
      if (head.headers['content-length'] !== undefined)
        t.is(head.headers['content-length'], String(get.body.length), path);
      t.is(head.body.length, 0);
    }
  }
});

test('OPTIONS is a 405 with the allowed methods for resources, and returns those of documents', async (t) => {
  const { port } = await serveReal(t);
  for (const [path, allow] of [
    [maps, 'DELETE, GET, POST'],
    [`${maps}/a`, 'DELETE, GET, PATCH, PUT'],
    ['/api/v1/watch/configmaps', 'GET'],
  ]) {
    const reply = await call(port, 'OPTIONS', path as string);
    t.is(reply.status, 405);
    t.is(reply.headers.allow?.split(', ').sort().join(', '), allow);
    t.is(reply.json.reason, 'MethodNotAllowed');
  }
  const fixed = await call(port, 'OPTIONS', '/version');
  t.is(fixed.status, 200);
  t.is(fixed.headers.allow, 'HEAD, GET');
});

test('a trailing slash is ignored, except in the deletion of a collection', async (t) => {
  const { port } = await serveReal(t);
  for (const path of [
    '/api',
    '/apis',
    '/apis/extensions',
    '/api/v1',
    '/apis/extensions/v1beta1',
    '/version',
    '/openapi/v2',
  ]) {
    const [plain, slashed] = [await call(port, 'GET', path), await call(port, 'GET', `${path}/`)];
    t.is(slashed.status, 200, path);
    t.is(slashed.headers['content-type'], plain.headers['content-type']);
    t.is(slashed.text, plain.text, path);
  }
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'slashed' } });
  t.is((await call(port, 'POST', `${maps}/`, { body })).status, 201);
  t.is((await call(port, 'GET', `${maps}/`)).json.kind, 'ConfigMapList');
  t.is((await call(port, 'GET', `${maps}/slashed/`)).json.metadata.name, 'slashed');
  t.is((await call(port, 'GET', '/api/v1/namespaces/default/')).json.kind, 'Namespace');
  t.is((await call(port, 'GET', '/api/v1/namespaces/default/status/')).json.kind, 'Namespace');
  t.is((await call(port, 'DELETE', `${maps}/`)).status, 404);
  t.is((await call(port, 'DELETE', `${maps}/slashed/`)).status, 200);
});
