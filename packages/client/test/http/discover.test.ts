import { createHash } from 'node:crypto';
import test from 'ava';
import { failureOf, fakeServer, sendJson, statusBody } from './fake-server.ts';

const hash = (text: string) => createHash('sha256').update(text).digest().subarray(0, 8).toString('base64');

const resource = (name: string, kind: string, storageVersionHash?: string) => ({
  name,
  singularName: kind.toLowerCase(),
  namespaced: name !== 'nodes',
  kind,
  verbs: ['get', 'list'],
  ...(storageVersionHash === undefined ? {} : { storageVersionHash }),
});

const list = (groupVersion: string, ...resources: object[]) => ({
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion,
  resources,
});

const group = (name: string, versions: string[], preferred: string) => ({
  name,
  versions: versions.map((version) => ({ groupVersion: `${name}/${version}`, version })),
  preferredVersion: { groupVersion: `${name}/${preferred}`, version: preferred },
});

const apps = hash('apps/v1/Deployment');

const plain: Record<string, object> = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': {
    kind: 'APIGroupList',
    groups: [
      group('apps', ['v1beta1', 'v1'], 'v1'),
      group('extensions', ['v1beta1'], 'v1beta1'),
      group('gone', ['v1'], 'v1'),
    ],
  },
  '/api/v1': list('v1', resource('nodes', 'Node'), resource('pods', 'Pod'), {
    name: 'pods/status',
    kind: 'Pod',
    verbs: ['get'],
  }),
  '/apis/apps/v1': list('apps/v1', resource('deployments', 'Deployment', apps)),
  '/apis/apps/v1beta1': list('apps/v1beta1', resource('deployments', 'Deployment', apps)),
  '/apis/extensions/v1beta1': list(
    'extensions/v1beta1',
    resource('deployments', 'Deployment', apps),
    resource('oddities', 'Oddity'),
  ),
};

const shortRows = (
  rows: readonly { group: string; version: string; resource: string; storage: { group: string; resource: string } }[],
) =>
  rows.map(
    ({ group: name, version, resource: plural, storage }) =>
      `${name}/${version}/${plural} in ${storage.group}/${storage.resource}`,
  );

test('plain documents: preferred versions first, subresources omitted, removed groups skipped, shared storage detected', async (t) => {
  const { client } = await fakeServer(t, ({ url }, response) => {
    const body = plain[url];
    if (body === undefined) sendJson(response, statusBody(404, 'NotFound'), 404);
    else sendJson(response, body);
  });
  const rows = await client.discover();
  t.deepEqual(shortRows(rows), [
    '/v1/nodes in /nodes',
    '/v1/pods in /pods',
    'apps/v1/deployments in apps/deployments',
    'apps/v1beta1/deployments in apps/deployments',
    'extensions/v1beta1/deployments in apps/deployments',
    'extensions/v1beta1/oddities in extensions/oddities',
  ]);
  t.deepEqual(rows[0], {
    group: '',
    version: 'v1',
    resource: 'nodes',
    kind: 'Node',
    namespaced: false,
    verbs: ['get', 'list'],
    storage: { group: '', resource: 'nodes' },
  });
});

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const entry = (name: string, kind: string) => ({
  resource: name,
  responseKind: { group: '', version: '', kind },
  scope: 'Namespaced',
  singularResource: kind.toLowerCase(),
  verbs: ['get'],
});
const aggregated: Record<string, object> = {
  '/api': { items: [{ metadata: { name: '' }, versions: [{ version: 'v1', resources: [entry('pods', 'Pod')] }] }] },
  '/apis': {
    items: [
      { metadata: { name: 'apps' }, versions: [{ version: 'v1', resources: [entry('deployments', 'Deployment')] }] },
      {
        metadata: { name: 'extensions' },
        versions: [{ version: 'v1beta1', resources: [entry('deployments', 'Deployment')] }],
      },
    ],
  },
};

test('aggregated documents: two requests, and one for each group version that may share storage', async (t) => {
  const { client, seen } = await fakeServer(t, ({ url }, response) => {
    const body = aggregated[url];
    if (body !== undefined) sendJson(response, body, 200, { 'Content-Type': aggregatedType });
    else sendJson(response, plain[url]);
  });
  t.deepEqual(shortRows(await client.discover()), [
    '/v1/pods in /pods',
    'apps/v1/deployments in apps/deployments',
    'extensions/v1beta1/deployments in apps/deployments',
  ]);
  t.deepEqual(seen.map(({ url }) => url).sort(), ['/api', '/apis', '/apis/apps/v1', '/apis/extensions/v1beta1']);
});

test('when only one document is aggregated, discovery uses the plain documents', async (t) => {
  const { client } = await fakeServer(t, ({ url, headers }, response) => {
    const wanted = headers.accept?.includes('APIGroupDiscoveryList');
    if (url === '/apis' && wanted) sendJson(response, aggregated[url], 200, { 'Content-Type': aggregatedType });
    else if (plain[url] === undefined) sendJson(response, statusBody(404, 'NotFound'), 404);
    else sendJson(response, plain[url]);
  });
  t.is((await client.discover()).length, 6);
});

test('discovery succeeds without permission to read groups, and fails when the server fails', async (t) => {
  let apis = 403;
  const { client } = await fakeServer(t, ({ url }, response) => {
    if (url === '/apis') sendJson(response, statusBody(apis, 'Forbidden'), apis);
    else sendJson(response, plain[url]);
  });
  t.deepEqual(shortRows(await client.discover()), ['/v1/nodes in /nodes', '/v1/pods in /pods']);
  apis = 500;
  t.like(await failureOf(client.discover()), { code: 500 });
});
