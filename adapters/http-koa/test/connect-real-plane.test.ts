import { type AdmissionRequest, statusErrors } from '@keelson/core';
import test from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call } from './support/serve.ts';
import { dialerTo, httpUpstream } from './support/upstream.ts';

const pods = '/api/v1/namespaces/default/pods';

function pod(name: string, spec: object = { nodeName: 'n1' }): { body: string } {
  const containers = [{ name: 'app', image: 'x' }];
  return { body: JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, ...spec } }) };
}

test('a log is read from the agent; invalid options are rejected with their fields, and missing pods with 404', async (t) => {
  const upstream = await httpUpstream(t, ({ url }, response) => response.end(url));
  const { port } = await serveReal(t, { nodeDialer: dialerTo(upstream) });
  await call(port, 'POST', pods, pod('p'));
  await call(port, 'POST', pods, pod('waiting', {}));
  const get = (path: string) => call(port, 'GET', `${pods}/${path}`);

  t.is((await get('p/log?tailLines=3&follow=1&junk=1')).text, '/containerLogs/default/p/app?follow=true&tailLines=3');
  t.deepEqual([(await get('waiting/log')).status, (await get('waiting/log')).text], [200, '']);
  const invalid = await get('p/log?tailLines=-1&limitBytes=0');
  t.is(invalid.status, 422);
  t.deepEqual(
    invalid.json.details.causes.map(({ field }: { field: string }) => field),
    ['tailLines', 'limitBytes'],
  );
  t.regex(invalid.json.message, /^PodLogOptions "p" is invalid: \[tailLines: /);
  for (const query of ['tailLines=x', 'sinceTime=yesterday', 'sinceSeconds=1.5']) {
    t.is((await get(`p/log?${query}`)).status, 400, query);
  }
  t.is((await get('p/portforward?ports=80,http')).status, 400);
  t.like((await get('missing/log')).json, { code: 404, message: 'pods "missing" not found' });
  t.like((await get('p/log?container=x')).json, { code: 400, message: 'container x is not valid for pod p' });
});

test('admission receives connect requests with their options, and can reject them', async (t) => {
  const seen: Partial<AdmissionRequest>[] = [];
  const { port } = await serveReal(t, {
    nodeDialer: dialerTo(1),
    admission: [
      {
        name: 'NoShells',
        handles: ({ operation }) => operation === 'connect',
        validate: ({ name, namespace, subresource, object }) => {
          seen.push({ name, namespace, subresource, object });
          throw statusErrors.forbidden({ group: '', resource: 'pods' }, name, 'no shells here');
        },
      },
    ],
  });
  await call(port, 'POST', pods, pod('p'));
  const reply = await call(port, 'POST', `${pods}/p/exec?command=sh&command=-c&stdin=true&tty=0`);
  t.like(reply.json, { code: 403, message: 'pods "p" is forbidden: no shells here' });
  t.deepEqual(seen, [
    {
      name: 'p',
      namespace: 'default',
      subresource: 'exec',
      object: { kind: 'PodExecOptions', apiVersion: 'v1', command: ['sh', '-c'], stdin: true, tty: false },
    },
  ]);
});

test('discovery and OpenAPI describe connect subresources as existing clients expect them', async (t) => {
  const { port } = await serveReal(t);
  const { resources } = (await call(port, 'GET', '/api/v1')).json as {
    resources: { name: string; kind: string; verbs: string[] }[];
  };
  const shown = Object.fromEntries(resources.map(({ name, kind, verbs }) => [name, `${kind} ${verbs.join()}`]));
  t.like(shown, {
    'pods/log': 'Pod get',
    'pods/exec': 'PodExecOptions create,get',
    'pods/attach': 'PodAttachOptions create,get',
    'pods/portforward': 'PodPortForwardOptions create,get',
    'pods/proxy': 'PodProxyOptions create,delete,get,patch,update',
    'nodes/proxy': 'NodeProxyOptions create,delete,get,patch,update',
    'services/proxy': 'ServiceProxyOptions create,delete,get,patch,update',
  });
  const { paths } = (await call(port, 'GET', '/openapi/v2')).json;
  const ids = (path: string) =>
    Object.values(paths[`/api/v1${path}`] as Record<string, { operationId?: string }>).flatMap(
      ({ operationId }) => operationId ?? [],
    );
  const inPod = '/namespaces/{namespace}/pods/{name}';
  t.deepEqual(ids(`${inPod}/log`), ['readCoreV1NamespacedPodLog']);
  t.deepEqual(ids(`${inPod}/exec`), ['connectCoreV1GetNamespacedPodExec', 'connectCoreV1PostNamespacedPodExec']);
  t.true(ids('/nodes/{name}/proxy').includes('connectCoreV1PutNodeProxy'));
  t.true(ids('/nodes/{name}/proxy/{path}').includes('connectCoreV1DeleteNodeProxyWithPath'));
  const parameters = paths[`/api/v1${inPod}/exec`].parameters as { name: string }[];
  t.true(parameters.some(({ name }) => name === 'command'));
});

test('a service proxy is 503 without endpoints, 404 for a missing service and 400 for an unknown scheme', async (t) => {
  const { port } = await serveReal(t);
  const post = (kind: string, body: object) =>
    call(port, 'POST', `/api/v1/namespaces/default/${kind}`, { body: JSON.stringify({ apiVersion: 'v1', ...body }) });
  await post('services', { kind: 'Service', metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } });
  const proxy = '/api/v1/namespaces/default/services/http:web:80/proxy/';
  t.like((await call(port, 'GET', proxy)).json, {
    code: 503,
    message: 'no endpoints available for service "http:web:80"',
  });
  t.is((await call(port, 'GET', proxy.replace('web', 'none'))).status, 404);
  t.is((await call(port, 'GET', proxy.replace('http', 'ftp'))).status, 400);
});
