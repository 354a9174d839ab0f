import { Agent } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call, lines, open } from './support/serve.ts';

const all = '/api/v1/namespaces/default/configmaps';
const tableV1 =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

test('create, read, replace, patch and delete of an object return the correct codes', async (t) => {
  const { port } = await serveReal(t);
  const created = await call(port, 'POST', `${all}?fieldManager=kubectl-create&fieldValidation=Strict`, {
    body: '{"metadata":{"name":"a"},"data":{"k":"v"}}',
  });
  t.is(created.status, 201);
  t.like(created.json, { kind: 'ConfigMap', apiVersion: 'v1', data: { k: 'v' } });
  t.is((await call(port, 'POST', all, { body: '{"metadata":{"name":"a"}}' })).status, 409);
  const read = await call(port, 'GET', `${all}/a`);
  t.deepEqual(read.json, created.json);
  const replaced = await call(port, 'PUT', `${all}/a`, {
    body: 'kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  k: w\n',
    headers: { 'content-type': 'application/yaml' },
  });
  t.is(replaced.status, 200);
  t.is(replaced.json.data.k, 'w');
  for (const [type, body, expected] of [
    ['application/json-patch+json', '[{"op":"replace","path":"/data/k","value":"1"}]', '1'],
    ['application/merge-patch+json', '{"data":{"k":"2"}}', '2'],
    ['application/strategic-merge-patch+json', '{"data":{"k":"3"}}', '3'],
  ] as const) {
    const patched = await call(port, 'PATCH', `${all}/a`, { body, headers: { 'content-type': type } });
    t.is(patched.status, 200);
    t.is(patched.json.data.k, expected);
  }
  t.is((await call(port, 'PUT', `${all}/b`, { body: '{"metadata":{"name":"b"}}' })).status, 404);
  const deleted = await call(port, 'DELETE', `${all}/a`, { body: '{"propagationPolicy":"Background"}' });
  t.is(deleted.status, 200);
  t.like(deleted.json, {
    kind: 'Status',
    status: 'Success',
    details: { name: 'a', kind: 'configmaps', uid: created.json.metadata.uid },
  });
  t.is((await call(port, 'GET', `${all}/a`)).status, 404);
  t.is((await call(port, 'DELETE', `${all}/a`)).status, 404);
});

test('the representation of a response follows Accept, pretty and the user agent', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', all, { body: '{"metadata":{"name":"a"},"data":{"k":"v"}}' });
  const get = (accept: string, query = '', agent = 'kubectl/v1') =>
    call(port, 'GET', `${all}/a${query}`, { headers: { accept, 'user-agent': agent } });
  const json = await get('application/json, */*');
  t.is(json.text, `${JSON.stringify(json.json)}\n`);
  const indented = `${JSON.stringify(json.json, null, 2)}\n`;
  t.is((await get('application/json', '?pretty=true')).text, indented);
  t.is((await get('application/json;pretty=1')).text, indented);
  t.is((await get('*/*', '', 'curl/8.0')).text, indented);
  t.is((await get('*/*', '', 'Mozilla/5.0 (X)')).text, indented);
  t.is((await get('*/*', '?pretty=false', 'Wget/1')).text, json.text);
  t.is((await get('*/*', '?pretty=maybe')).text, json.text);
  const yaml = await get('application/yaml');
  t.is(yaml.headers['content-type'], 'application/yaml');
  t.regex(yaml.text, /^kind: ConfigMap\napiVersion: v1\nmetadata:\n/);
  t.is((await get('application/vnd.acme.protobuf,application/json')).headers['content-type'], 'application/json');
  t.is((await get('application/xml;q=0.9, application/json;q=0.1')).status, 200);

  const table = await get(tableV1);
  t.is(table.headers['content-type'], 'application/json');
  t.like(table.json, { kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
  t.is(table.json.rows[0].object.kind, 'PartialObjectMetadata');
  t.is((await get(tableV1, '?includeObject=Object')).json.rows[0].object.kind, 'ConfigMap');
  t.is((await get(tableV1, '?includeObject=None')).json.rows[0].object, undefined);
  t.is((await get(tableV1, '?includeObject=All')).status, 400);
  const old = await get('application/json;as=Table;g=meta.k8s.io;v=v1beta1');
  t.is(old.json.apiVersion, 'meta.k8s.io/v1beta1');
  const partial = await get('application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1');
  t.is(partial.json.kind, 'PartialObjectMetadata');
  t.is(partial.json.data, undefined);

  for (const accept of [
    'application/xml',
    'application/vnd.acme.protobuf',
    'application/json;as=Unknown;g=x;v=y',
    'image/*',
  ]) {
    const refused = await get(accept);
    t.is(refused.status, 406, accept);
    t.is(refused.headers['content-type'], 'application/json');
    t.is(refused.json.reason, 'NotAcceptable');
  }
  t.is((await call(port, 'GET', all, { headers: { accept: 'application/json;stream=watch' } })).status, 406);
  const missing = await call(port, 'GET', `${all}/none`, { headers: { accept: 'application/yaml' } });
  t.is(missing.status, 404);
  t.is(missing.headers['content-type'], 'application/yaml');
  t.regex(missing.text, /^kind: Status\n/);
});

test('lists are returned in pages of one snapshot, and as tables', async (t) => {
  const { port } = await serveReal(t);
  for (const name of ['c', 'a', 'b', 'e', 'd'])
    await call(port, 'POST', all, { body: `{"metadata":{"name":"${name}","labels":{"n":"${name}"}}}` });
  const names: string[] = [];
  const revisions = new Set<string>();
  let token = '';
  do {
    const page = await call(port, 'GET', `${all}?limit=2&continue=${token}`);
    t.is(page.status, 200);
    names.push(...page.json.items.map((item: { metadata: { name: string } }) => item.metadata.name));
    revisions.add(page.json.metadata.resourceVersion);
    token = page.json.metadata.continue ?? '';
    await call(port, 'POST', all, { body: '{"metadata":{"generateName":"zz-"}}' });
  } while (token !== '');
  t.deepEqual(names, ['a', 'b', 'c', 'd', 'e']);
  t.is(revisions.size, 1);
  t.is((await call(port, 'GET', `${all}?continue=rubbish`)).status, 410);
  t.is((await call(port, 'GET', `${all}?labelSelector=n+in+(a,b)`)).json.items.length, 2);
  t.is((await call(port, 'GET', `${all}?labelSelector=%3D%3D`)).status, 400);
  t.is((await call(port, 'GET', '/api/v1/configmaps?fieldSelector=metadata.name%3Dc')).json.items.length, 1);
  const table = await call(port, 'GET', `${all}?limit=2`, { headers: { accept: tableV1 } });
  t.is(table.json.rows.length, 2);
  t.truthy(table.json.metadata.continue);
  const yaml = await call(port, 'GET', `${all}?limit=1`, { headers: { accept: 'application/yaml' } });
  t.regex(yaml.text, /^kind: ConfigMapList\n/);
});

test('expired revisions are 410: of a watch as an event of its stream, of a page of a list as the response', async (t) => {
  const clock = new FakeClock(Date.parse('2026-01-01T00:00:00Z'));
  const { port } = await serveReal(t, { clock });
  for (const name of ['a', 'b', 'c']) await call(port, 'POST', all, { body: `{"metadata":{"name":"${name}"}}` });
  const first = (await call(port, 'GET', `${all}?limit=1`)).json.metadata;
  const watch = `${all}?watch=1&timeoutSeconds=1&resourceVersion=${first.resourceVersion}`;
  const page = `${all}?limit=1&continue=${first.continue}`;
  clock.advance(299_000);
  t.is((await call(port, 'GET', page)).status, 200);

  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  t.teardown(() => agent.destroy());
  const change = (i: number) =>
    call(port, 'PUT', `${all}/a`, { agent, body: `{"metadata":{"name":"a"},"data":{"i":"${i}"}}` });
  for (let i = 0; i < 1000; i += 8) await Promise.all(Array.from({ length: 8 }, (_, at) => change(i + at)));
  clock.advance(301_000);
  for (let i = 0; i < 400; i += 1) await change(i);
  const old = await call(port, 'GET', page);
  t.is(old.status, 410);
  t.like(old.json, { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410 });
  for (const accept of ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']) {
    const lost = await call(port, 'GET', watch, { headers: { accept } });
    t.is(lost.status, 200);
    t.true(lost.text.includes('ERROR') && lost.text.includes('Expired'), accept);
    if (accept === 'application/json') t.like(lost.json, { type: 'ERROR', object: { kind: 'Status', code: 410 } });
  }
  t.is((await call(port, 'GET', all)).json.items.length, 3);
});

test('watches send changes as objects, tables and metadata', async (t) => {
  const { port } = await serveReal(t);
  const revision = (await call(port, 'GET', all)).json.metadata.resourceVersion;
  const path = `${all}?watch=1&resourceVersion=${revision}`;
  const plain = lines(await open(port, 'GET', path, { headers: { accept: 'application/json;stream=watch' } }));
  const table = lines(await open(port, 'GET', path, { headers: { accept: tableV1 } }));
  const partial = lines(
    await open(port, 'GET', path, {
      headers: { accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' },
    }),
  );
  await call(port, 'POST', all, { body: '{"metadata":{"name":"a"},"data":{"k":"v"}}' });
  await call(port, 'PATCH', `${all}/a`, {
    body: '{"data":{"k":"w"}}',
    headers: { 'content-type': 'application/merge-patch+json' },
  });
  await call(port, 'DELETE', `${all}/a`);
  for (const [i, type] of ['ADDED', 'MODIFIED', 'DELETED'].entries()) {
    t.like((await plain.next()).value, { type, object: { kind: 'ConfigMap', metadata: { name: 'a' } } });
    const row = (await table.next()).value;
    t.like(row, { type, object: { kind: 'Table' } });
    t.is((row!.object['columnDefinitions'] as unknown[]).length > 0, i === 0, 'columns come in the first event only');
    t.like((await partial.next()).value, { type, object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } });
  }
  const old = await call(port, 'GET', `${all}?watch=1&resourceVersion=1&timeoutSeconds=1`);
  t.is(old.status, 200);
});

test('initial events are followed by their bookmark, and are not available as tables', async (t) => {
  const { port } = await serveReal(t);
  await call(port, 'POST', all, { body: '{"metadata":{"name":"a"}}' });
  const query = '?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const incoming = lines(await open(port, 'GET', `${all}${query}`, { headers: { accept: tableV1 } }));
  t.like((await incoming.next()).value, { type: 'ADDED', object: { kind: 'ConfigMap' } });
  t.like((await incoming.next()).value, {
    type: 'BOOKMARK',
    object: { kind: 'ConfigMap', metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
  });
  const only = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
  t.is((await call(port, 'GET', `${all}${query}`, only)).status, 406);
  t.is((await call(port, 'GET', `${all}?watch=1&resourceVersionMatch=NotOlderThan`)).status, 422);
});

test('deployments of extensions/v1beta1 and apps/v1 are the same objects', async (t) => {
  const { port } = await serveReal(t);
  const body = JSON.stringify({
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  const created = await call(port, 'POST', '/apis/apps/v1/namespaces/default/deployments', { body });
  t.is(created.status, 201);
  const twin = await call(port, 'GET', '/apis/extensions/v1beta1/namespaces/default/deployments/web');
  t.like(twin.json, { kind: 'Deployment', apiVersion: 'extensions/v1beta1' });
  const list = await call(port, 'GET', '/apis/extensions/v1beta1/deployments');
  t.is(list.json.items[0].apiVersion, 'extensions/v1beta1');
  const scale = await call(port, 'PATCH', '/apis/apps/v1/namespaces/default/deployments/web/scale', {
    body: '{"spec":{"replicas":3}}',
    headers: { 'content-type': 'application/merge-patch+json' },
  });
  t.is(scale.status, 200);
  t.is(scale.json.spec.replicas, 3);
  const put = await call(port, 'PUT', '/apis/apps/v1/namespaces/default/deployments/web/scale', {
    body: JSON.stringify({ ...scale.json, spec: { replicas: 4 } }),
  });
  t.is(put.status, 200);
});

test('discovery: plain with and without a trailing slash, aggregated with ETag', async (t) => {
  const { port } = await serveReal(t);
  for (const slash of ['', '/']) {
    t.like((await call(port, 'GET', `/api${slash}`)).json, {
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ serverAddress: `127.0.0.1:${port}` }],
    });
    t.true((await call(port, 'GET', `/apis${slash}`)).json.groups.some((g: { name: string }) => g.name === 'apps'));
    t.is((await call(port, 'GET', `/apis/apps${slash}`)).json.preferredVersion.groupVersion, 'apps/v1');
    t.like((await call(port, 'GET', `/apis/apps/v1${slash}`)).json, {
      kind: 'APIResourceList',
      groupVersion: 'apps/v1',
    });
    t.true(
      (await call(port, 'GET', `/api/v1${slash}`)).json.resources.some(
        (r: { name: string }) => r.name === 'namespaces/finalize',
      ),
    );
    t.is((await call(port, 'GET', `/version${slash}`)).json.gitVersion, 'v1.32.0');
  }
  for (const path of ['/apis/none', '/apis/apps/v9', '/api/v2', '/apis/apps/v1/']) {
    t.is((await call(port, 'GET', path)).status, path === '/apis/apps/v1/' ? 200 : 404, path);
  }
  t.is(
    (await call(port, 'GET', '/apis', { headers: { accept: 'application/yaml' } })).headers['content-type'],
    'application/yaml',
  );
  t.is((await call(port, 'GET', '/apis', { headers: { accept: 'image/png' } })).status, 406);

  const type = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const accept = `${type},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json`;
  for (const path of ['/api', '/apis']) {
    const aggregated = await call(port, 'GET', `${path}?timeout=32s`, { headers: { accept } });
    t.is(aggregated.headers['content-type'], type);
    t.is(aggregated.json.kind, 'APIGroupDiscoveryList');
    t.is(aggregated.headers['cache-control'], 'public');
    t.is(aggregated.headers.vary?.split(', ')[0], 'Accept');
    const again = await call(port, 'GET', path, {
      headers: { accept, 'if-none-match': aggregated.headers.etag as string },
    });
    t.is(again.status, 304);
    t.is(again.body.length, 0);
    t.is(again.headers['content-length'], undefined);
    t.is(again.headers.etag, aggregated.headers.etag);
  }
});

test('the index lists paths; OpenAPI v3 is an index of documents that are cacheable by their hash', async (t) => {
  const { port } = await serveReal(t);
  const index = await call(port, 'GET', '/');
  t.true(['/api/v1', '/apis/apps', '/healthz', '/openapi/v3'].every((path) => index.json.paths.includes(path)));
  t.deepEqual(index.json.paths, [...index.json.paths].sort());
  const openApi = await call(port, 'GET', '/openapi/v3?timeout=32s');
  const url: string = openApi.json.paths['apis/apps/v1'].serverRelativeURL;
  const document = await call(port, 'GET', `${url}&timeout=32s`);
  t.is(document.status, 200);
  t.is(document.json.openapi, '3.0.0');
  t.is(document.headers['cache-control'], 'public, immutable');
  t.truthy(document.headers.expires);
  const known = await call(port, 'GET', url, { headers: { 'if-none-match': document.headers.etag as string } });
  t.is(known.status, 304);
  const moved = await call(port, 'GET', '/openapi/v3/apis/apps/v1?hash=OLD');
  t.is(moved.status, 301);
  t.is(moved.headers.location, url);
  t.is((await call(port, 'GET', '/openapi/v3/api/v1')).status, 200);
  t.is((await call(port, 'GET', '/openapi/v3/apis/none/v1')).status, 404);
  const zipped = await call(port, 'GET', url, { headers: { 'accept-encoding': 'gzip' } });
  t.is(zipped.headers['content-encoding'], 'gzip');
});

test('a long list is identical in concurrent, compressed and repeated reads, and beside clients that disconnect', async (t) => {
  const plane = await serveReal(t);

  for (let from = 0; from < 2500; from += 100) {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const body = JSON.stringify({ metadata: { name: `n${from + i}` }, data: { value: `${i}-`.repeat(2 * i) } });
        return call(plane.port, 'POST', all, { body });
      }),
    );
  }
  const page = await call(plane.port, 'GET', `${all}?limit=1900`);
  const whole = [
    ...page.json.items,
    ...(await call(plane.port, 'GET', `${all}?limit=1900&continue=${page.json.metadata.continue}`)).json.items,
  ];
  t.is(whole.length, 2500);
  for (let round = 0; round < 2; round += 1) {
    const gone = new AbortController();
    const leaving = Array.from({ length: 4 }, async () => {
      const reply = await fetch(`http://127.0.0.1:${plane.port}${all}`, { signal: gone.signal });
      await reply.body?.getReader().read();
      gone.abort();
    }).map((reader) => reader.catch(() => {}));
    const encodings = ['identity', 'gzip', 'identity', 'gzip', 'identity', 'identity'];
    const replies = await Promise.all(
      encodings.map((encoding) => call(plane.port, 'GET', all, { headers: { 'accept-encoding': encoding } })),
    );
    await Promise.all(leaving);
    const bodies = replies.map((reply, i) => (encodings[i] === 'gzip' ? gunzipSync(reply.body) : reply.body));
    t.deepEqual(JSON.parse(String(bodies[0])).items, whole);
    for (const [i, body] of bodies.entries()) {
      t.is(replies[i]?.headers['content-encoding'], encodings[i] === 'gzip' ? 'gzip' : undefined);
      t.true(body.equals(bodies[0] as Buffer));
    }
    const forms = [
      'application/vnd.kubernetes.protobuf',
      'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
      'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    ];
    for (const accept of forms) {
      const plain = await call(plane.port, 'GET', all, { headers: { accept } });
      const zipped = await call(plane.port, 'GET', all, { headers: { accept, 'accept-encoding': 'gzip' } });
      t.deepEqual([plain.status, zipped.headers['content-encoding']], [200, 'gzip']);
      t.true(gunzipSync(zipped.body).equals(plain.body), accept);
    }
    // What changes is read from its new bytes, and the leaf it is in is as new to lists as the first time.
    const changed = whole[round * 700];
    await call(plane.port, 'PATCH', `${all}/${changed.metadata.name}`, {
      body: JSON.stringify({ data: { value: `round ${round}` } }),
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    whole[round * 700] = (await call(plane.port, 'GET', `${all}/${changed.metadata.name}`)).json;
  }
});

test('a Scale in a table has its own columns', async (t) => {
  const { port } = await serveReal(t);
  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app:1' }] } };
  const body = { metadata: { name: 'web' }, spec: { replicas: 3, selector: { matchLabels: labels }, template } };
  const made = await call(port, 'POST', deployments, { body: JSON.stringify(body) });
  t.is(made.status, 201, made.text);
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const { json } = await call(port, 'GET', `${deployments}/web/scale`, { headers: { accept } });
  t.deepEqual(
    json.columnDefinitions.map(({ name }: { name: string }) => name),
    ['Name', 'Desired', 'Available', 'Age'],
  );
  t.deepEqual(json.rows[0].cells.slice(0, 3), ['web', 3, 0]);
});
