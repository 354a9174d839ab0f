import test, { type ExecutionContext } from 'ava';
import { serveReal } from './support/real-plane.ts';
import { call, type Reply } from './support/serve.ts';

const pods = '/api/v1/namespaces/default/pods';
const strategic = 'application/strategic-merge-patch+json';
const amounts = (cpu: string, memory = '64Mi') => ({ cpu, memory });
const main = { name: 'main', image: 'app:1', resources: { requests: amounts('100m'), limits: amounts('200m') } };
const init = { ...main, name: 'init' };
const sidecar = { ...main, name: 'sidecar', restartPolicy: 'Always' };

async function served(t: ExecutionContext, spec: object = {}, metadata: object = {}) {
  const { port } = await serveReal(t);
  const send = (method: string, path: string, body?: object, type = 'application/json'): Promise<Reply> =>
    call(port, method, path, {
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': type } }),
    });
  const pod = { metadata: { name: 'a', ...metadata }, spec: { containers: [main], initContainers: [init], ...spec } };
  const created = await send('POST', pods, pod);
  t.is(created.status, 201, created.text);
  /** Changes the pod as it is with `change`, and sends it to `resize`. */
  const resize = async (change: (pod: Reply['json']) => void): Promise<Reply> => {
    const { json } = await send('GET', `${pods}/a`);
    change(json);
    return send('PUT', `${pods}/a/resize`, json);
  };
  return { send, resize };
}

const causesOf = ({ json }: Reply) =>
  json.details.causes.map(({ field, message }: { field: string; message: string }) => `${field}: ${message}`);

test('resize reads, replaces and patches cpu and memory of containers and sidecars, and raises the generation', async (t) => {
  const { send, resize } = await served(t, { initContainers: [init, sidecar] });
  const replaced = await resize(({ metadata, spec, status }) => {
    spec.containers[0].resources = { requests: amounts('150m'), limits: amounts('300m', '128Mi') };
    Object.assign(spec.containers[0], { image: 'other:1' });
    Object.assign(metadata, { labels: { other: 'x' } });
    Object.assign(status, { phase: 'Failed' });
  });
  t.is(replaced.status, 200, replaced.text);
  t.deepEqual(replaced.json.spec.containers[0].resources, {
    requests: amounts('150m'),
    limits: amounts('300m', '128Mi'),
  });
  t.is(replaced.json.metadata.generation, 2);
  t.like(replaced.json, { status: { phase: 'Pending' }, metadata: { labels: undefined } } as never);
  t.is(replaced.json.spec.containers[0].image, 'app:1', 'nothing else of the pod changes');
  const patch = { spec: { initContainers: [{ name: 'sidecar', resources: { requests: { cpu: '120m' } } }] } };
  const patched = await send('PATCH', `${pods}/a/resize`, patch, strategic);
  t.is(patched.json.spec.initContainers[1].resources.requests.cpu, '120m', patched.text);
  t.is((await send('GET', `${pods}/a/resize`)).json.metadata.generation, 3);
  t.is((await resize(() => {})).json.metadata.generation, 3, 'without a change the generation stays');
  const { json } = await send('GET', '/api/v1');
  const row = json.resources.find(({ name }: { name: string }) => name === 'pods/resize');
  t.deepEqual(row, {
    name: 'pods/resize',
    singularName: '',
    namespaced: true,
    kind: 'Pod',
    verbs: ['get', 'patch', 'update'],
  });
});

test('resize rejects what is not cpu or memory of a container that lasts', async (t) => {
  const { resize } = await served(t, { initContainers: [init, sidecar] });
  const rejected = async (change: (spec: Reply['json']) => void) => {
    const answer = await resize(({ spec }) => change(spec));
    t.is(answer.status, 422, answer.text);
    return causesOf(answer);
  };
  t.deepEqual(await rejected(({ containers }) => containers.push({ ...main, name: 'b' })), [
    'spec.containers: Forbidden: containers may not be added or removed on resize',
  ]);
  t.deepEqual(await rejected(({ initContainers }) => initContainers.reverse()), [
    'spec.initContainers[0].name: Forbidden: initContainers may not be renamed or reordered on resize',
    'spec.initContainers[1].name: Forbidden: initContainers may not be renamed or reordered on resize',
  ]);
  t.deepEqual(
    await rejected(({ containers }) => {
      containers[0].resources.requests['ephemeral-storage'] = '1Gi';
    }),
    ['spec: Forbidden: only cpu and memory resources are mutable'],
  );
  t.deepEqual(
    await rejected(({ containers }) => {
      containers[0].resizePolicy = [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }];
    }),
    ['spec: Forbidden: only cpu and memory resources are mutable'],
  );
  t.deepEqual(
    await rejected(({ initContainers }) => {
      initContainers[0].resources.requests.cpu = '1m';
      initContainers[1].resources.limits['ephemeral-storage'] = '1Gi';
    }),
    [
      'spec: Forbidden: resources for non-sidecar init containers are immutable',
      'spec: Forbidden: only cpu and memory resources for sidecar containers are mutable',
    ],
  );
  t.deepEqual(
    await rejected(({ containers }) => {
      containers[0].resources = { requests: { cpu: '100m' }, limits: { memory: '64Mi' } };
    }),
    ['spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed'],
  );
  t.deepEqual(
    await rejected(({ containers }) => {
      containers[0].resources.requests = amounts('1');
    }),
    ['spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal to cpu limit of 200m'],
  );
});

test('resize keeps the class of a pod, and rejects static pods, Windows pods and agents without support', async (t) => {
  const equal = { requests: amounts('1'), limits: amounts('1') };
  const { resize } = await served(t, { containers: [{ ...main, resources: equal }], initContainers: [] });
  const lower = ({ spec }: Reply['json']) => {
    spec.containers[0].resources.requests.cpu = '500m';
  };
  t.deepEqual(causesOf(await resize(lower)), [
    'spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing',
  ]);
  const refusal = async (spec: object, metadata: object) =>
    causesOf(await (await served(t, spec, metadata)).resize(lower));
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' } };
  t.deepEqual(await refusal({ nodeName: 'n' }, mirror), ['[]: Forbidden: static pods cannot be resized']);
  t.deepEqual(await refusal({ os: { name: 'windows' } }, {}), ['[]: Forbidden: windows pods cannot be resized']);
  const other = await served(t);
  const state = { running: { startedAt: '2026-01-02T12:00:00Z' } };
  const status = (more: object) => ({
    status: {
      containerStatuses: [{ name: 'main', image: 'app:1', imageID: '', ready: true, restartCount: 0, state, ...more }],
    },
  });
  const merge = 'application/merge-patch+json';
  const raise = ({ spec }: Reply['json']) => {
    spec.containers[0].resources.requests.cpu = '110m';
  };
  t.is((await other.send('PATCH', `${pods}/a/status`, status({}), merge)).status, 200);
  t.deepEqual(causesOf(await other.resize(raise)), ['spec: Forbidden: Pod running on node without support for resize']);
  await other.send('PATCH', `${pods}/a/status`, status({ resources: main.resources }), merge);
  t.is((await other.resize(raise)).status, 200);
});
