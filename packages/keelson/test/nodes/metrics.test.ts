import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createSelfSigned } from '@keelson/agent';
import { isStatusError } from '@keelson/core';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { ClusterRole, HorizontalPodAutoscaler, Node, NodeMetrics, Pod, PodMetrics, ReplicaSet } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { fakeUsageAnnotation } from '../../src/metrics/fake-usage.ts';
import { FakeNodes } from '../../src/nodes/fake-nodes.ts';

interface Summary {
  readonly node: object;
  readonly pods: object[];
}

/** Serves `/stats/summary` as an agent does. */
async function startAgent(answer: () => Summary | undefined) {
  const { certificate: cert, key } = await createSelfSigned(['agent'], Date.now());
  let asked = 0;
  const server = createServer({ cert, key }, (request, response) => {
    asked += 1;
    const body = request.url === '/stats/summary' ? answer() : undefined;
    response.statusCode = body === undefined ? 500 : 200;
    response.end(JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port, asked: () => asked };
}

const second = 1_000_000_000;

test('node and pod metrics are computed from two measurements of agents while they are requested', async (t) => {
  const clock = new FakeClock();
  const sample = (cores: number, memory: number) => {
    // Counters that rise with the clock.
    const usageCoreNanoSeconds = Math.round((clock.monotonic() / 1000) * cores * second);
    const time = new Date(clock.now()).toISOString();
    return { cpu: { time, usageCoreNanoSeconds }, memory: { workingSetBytes: memory } };
  };
  const uids = new Map<string, string>();
  let broken = false;
  const agent = await startAgent(() =>
    broken
      ? undefined
      : {
          node: sample(1.5, 2 ** 30),
          pods: ['a', 'b', 'stranger'].map((name) => ({
            podRef: { namespace: 'default', name, uid: uids.get(name) ?? name },
            containers: [{ name: 'main', ...sample(0.25, 2 ** 20) }, { name: 'side' }],
          })),
        },
  );
  t.teardown(() => agent.server.close());
  await using plane = await createControlPlane({ controllers: ['clusterrole-aggregation-controller'], clock });
  const nodes = plane.client(NodeMetrics);
  const pods = plane.client(PodMetrics);
  await t.throwsAsync(nodes.list(), { message: /does not reach node agents/ });
  await plane.listen({ agents: { local: new Map([['n', agent.port]]) } });
  await plane.client(Node).create({ metadata: { name: 'n', labels: { zone: 'x' } } });
  await plane.client(Node).create({ metadata: { name: 'without-agent' } });
  for (const name of ['a', 'b', 'unmeasured']) {
    const made = await plane
      .client(Pod)
      .namespace('default')
      .create({
        metadata: { name, labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'i' }] },
      } as Pod);
    uids.set(name, made.metadata?.uid ?? '');
  }
  t.is(agent.asked(), 0, 'agents are not requested before the server is');
  const first = nodes.list();
  await until(() => agent.asked() === 1);
  // The second measurement begins a second later.
  let done = false;
  const finished = first.then(() => {
    done = true;
  });
  await until(() => {
    if (!done) clock.advance(100);
    return done;
  });
  await finished;
  t.is(agent.asked(), 2);
  const [node, ...others] = (await first).items;
  t.deepEqual(others, []);
  t.like(node, { metadata: { name: 'n', labels: { zone: 'x' } }, usage: { cpu: '1500000000n', memory: '1048576Ki' } });
  const listed = async (options: object) =>
    (await pods.namespace('default').list(options)).items.map(({ metadata }) => metadata?.name);
  t.deepEqual(await listed({}), ['a', 'b']);
  t.deepEqual(await listed({ labelSelector: 'app=b' }), ['b']);
  t.deepEqual(await listed({ labelSelector: 'app=unmeasured' }), []);
  t.deepEqual((await pods.namespace('other').list()).items, []);
  t.like(await pods.namespace('default').get('a'), {
    kind: 'PodMetrics',
    containers: [{ name: 'main', usage: { cpu: '250000000n', memory: '1024Ki' } }],
  });
  for (const missing of [() => nodes.get('without-agent'), () => pods.namespace('default').get('unmeasured')])
    t.true(isStatusError(await t.throwsAsync(missing), 'NotFound'));
  await t.throwsAsync(nodes.delete('n'), { message: /not supported/ });
  t.is(agent.asked(), 2, 'answers come from the measurements');

  broken = true;
  clock.advance(15_000);
  await until(async () => (await nodes.list()).items.length === 0);
  broken = false;
  const before = agent.asked();
  clock.advance(200_000);
  await until(async () => {
    clock.advance(1_000);
    return (await nodes.list()).items.length === 1;
  });
  t.true(agent.asked() > before);

  const mayRead = async (role: string) =>
    (await plane.client(ClusterRole).get(role)).rules?.some(({ apiGroups }) => apiGroups?.includes('metrics.k8s.io'));
  for (const role of ['view', 'edit', 'admin']) await until(() => mayRead(role), `${role} may read metrics`);
});

test('pods of fake nodes use what they request, or the share that an annotation states, and are scaled by it', async (t) => {
  const clock = new FakeClock();
  await using plane = await createControlPlane({
    controllers: ['api', 'replicaset-controller', 'horizontal-pod-autoscaler-controller'],
    clock,
  });
  const fakes = new FakeNodes({ client: plane.api, clock, logger: silentLogger, count: 2 });
  await fakes.start();
  t.teardown(() => fakes.stop());
  await plane.listen({ agents: {} });
  const pods = plane.client(Pod).namespace('default');
  const requests = { cpu: '200m', memory: '64Mi' };
  const create = (name: string, nodeName: string, percent?: string) =>
    pods.create({
      metadata: { name, ...(percent && { annotations: { [fakeUsageAnnotation]: percent } }) },
      spec: {
        nodeName,
        containers: [
          { name: 'a', image: 'i', resources: { requests } },
          { name: 'b', image: 'i' },
        ],
      },
    });
  await create('whole', 'fake-1');
  await create('quarter', 'fake-1', '25');
  await create('invalid', 'fake-1', '-1');
  await create('elsewhere', 'real');
  const advancing = <T>(probe: () => Promise<T | undefined | false>) => {
    let settled = false;
    const result = until(probe).finally(() => {
      settled = true;
    });
    return Promise.all([
      result,
      until(() => {
        clock.advance(2_000);
        return settled;
      }),
    ]).then(([found]) => found);
  };
  const metrics = plane.client(PodMetrics).namespace('default');
  await advancing(async () => (await metrics.list()).items.length === 3);
  const usageOf = async (name: string) => (await metrics.get(name)).containers?.map(({ usage }) => usage);
  const none = { cpu: '0m', memory: '0Ki' };
  t.deepEqual(await usageOf('whole'), [{ cpu: '200m', memory: '65536Ki' }, none]);
  t.deepEqual(await usageOf('quarter'), [{ cpu: '50m', memory: '16384Ki' }, none]);
  t.deepEqual(await usageOf('invalid'), await usageOf('whole'));
  t.true(isStatusError(await t.throwsAsync(metrics.get('elsewhere')), 'NotFound'));
  const nodes = await plane.client(NodeMetrics).list();
  t.deepEqual(
    nodes.items.map(({ metadata, usage }) => [metadata?.name, usage]),
    [
      ['fake-1', { cpu: '450m', memory: '147456Ki' }],
      ['fake-2', none],
    ],
  );

  await plane
    .client(ReplicaSet)
    .namespace('default')
    .create({
      metadata: { name: 'web' },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { nodeName: 'fake-2', containers: [{ name: 'a', image: 'i', resources: { requests } }] },
        },
      },
    });
  await plane
    .client(HorizontalPodAutoscaler)
    .namespace('default')
    .create({
      metadata: { name: 'web' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web' },
        maxReplicas: 3,
        metrics: [
          { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
        ],
      },
    });
  await advancing(async () => (await plane.client(ReplicaSet).namespace('default').get('web')).spec?.replicas === 3);
});
