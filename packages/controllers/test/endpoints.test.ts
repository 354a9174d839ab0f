import { ControllerManager } from '@keelson/controller-kit';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { EndpointSlice, Endpoints, Event, Node, Pod, Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { workloadControllers } from '../src/index.ts';
import { startTestPlane, type TestPlane } from './support/test-plane.ts';

const names = ['endpoints-controller', 'endpointslice-controller', 'endpointslice-mirroring-controller'];
const managedBy = 'endpointslice.kubernetes.io/managed-by';

async function start(t: ExecutionContext): Promise<TestPlane> {
  const plane = await startTestPlane({ controllers: false });
  const controllers = new ControllerManager({
    client: plane.api,
    ...{ clock: systemClock, logger: silentLogger, metrics: noMetrics },
    controllers: workloadControllers.filter(({ name }) => names.includes(name)),
  });
  t.teardown(async () => {
    await controllers.stop();
    await plane.close();
  });
  await controllers.start();
  return plane;
}

interface PodOptions {
  readonly ready?: boolean;
  readonly ip?: string;
  readonly phase?: string;
  readonly port?: number;
  readonly spec?: Partial<Pod['spec']>;
}

async function addPod(plane: TestPlane, name: string, options: PodOptions = {}): Promise<void> {
  const { ready = true, ip = '10.1.0.1', phase = 'Running', port = 8080, spec = {} } = options;
  const pods = plane.client(Pod).namespace('default');
  const containers = [{ name: 'main', image: 'a', ports: [{ name: 'http', containerPort: port }] }];
  const made = await pods.create({
    metadata: { name, labels: { app: 'web' } },
    spec: { nodeName: 'node', containers, ...spec },
  });
  await setStatus(plane, made, { ready, ip, phase });
}

async function setStatus(
  plane: TestPlane,
  pod: Pod,
  { ready, ip, phase = 'Running' }: { ready: boolean; ip: string; phase?: string },
): Promise<void> {
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: '2026-01-02T00:00:00Z' }];
  const status = { phase, conditions, podIP: ip, podIPs: [{ ip }] };
  await plane
    .client(Pod)
    .namespace('default')
    .patchSubresource(pod.metadata?.name ?? '', 'status', 'merge', { status });
}

function web(spec: Partial<Service['spec']> = {}): Service {
  return {
    metadata: { name: 'web', labels: { tier: 'front' } },
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }], ...spec },
  };
}

const slices = async (plane: TestPlane) => (await plane.client(EndpointSlice).namespace('default').list()).items;
const subsets = async (plane: TestPlane, name = 'web') =>
  (await plane.client(Endpoints).namespace('default').get(name)).subsets;

/** Each endpoint as a line: address, pod, ready, serving, terminating, ports. */
async function lines(plane: TestPlane): Promise<string[]> {
  return (await slices(plane))
    .flatMap(({ endpoints, ports }) =>
      endpoints.map(({ addresses, conditions, targetRef }) =>
        [
          addresses.join(),
          targetRef?.name ?? '-',
          ...[conditions?.ready, conditions?.serving, conditions?.terminating].map((one) => String(one)[0]),
          (ports ?? []).map(({ port }) => port).join(),
        ].join(' '),
      ),
    )
    .sort();
}

async function reaches(t: ExecutionContext, plane: TestPlane, expected: string[]): Promise<void> {
  await until(async () => (await lines(plane)).join('\n') === expected.join('\n')).catch(() => {});
  t.deepEqual(await lines(plane), expected);
}

test('slices and endpoints follow pods that become ready, terminate, end and disappear', async (t) => {
  const plane = await start(t);
  const pods = plane.client(Pod).namespace('default');
  await plane.client(Service).namespace('default').create(web());
  await until(async () => (await slices(plane)).length === 1);
  const [empty] = await slices(plane);
  t.deepEqual(
    [empty?.endpoints, empty?.ports ?? [], empty?.addressType],
    [[], [], 'IPv4'],
    'an empty slice without pods',
  );
  t.deepEqual(empty?.metadata?.labels, {
    tier: 'front',
    'kubernetes.io/service-name': 'web',
    [managedBy]: 'endpointslice-controller.k8s.io',
  });
  t.is(empty?.metadata?.ownerReferences?.[0]?.kind, 'Service');

  await addPod(plane, 'a', { ip: '10.1.0.1' });
  await addPod(plane, 'b', { ip: '10.1.0.2', ready: false });
  await addPod(plane, 'ended', { ip: '10.1.0.3', phase: 'Succeeded' });
  await addPod(plane, 'other', { ip: '10.1.0.4', port: 9090 });
  await reaches(t, plane, ['10.1.0.1 a t t f 8080', '10.1.0.2 b f f f 8080', '10.1.0.4 other t t f 9090']);
  t.is((await slices(plane)).length, 2, 'one slice for each set of ports');
  await until(async () => ((await subsets(plane)) ?? []).length === 2);
  t.deepEqual(
    ((await subsets(plane)) ?? []).map(({ addresses, notReadyAddresses, ports }) => [
      addresses?.map(({ ip, nodeName, targetRef }) => [ip, nodeName, targetRef?.name]),
      notReadyAddresses?.map(({ ip }) => ip),
      ports?.map(({ name, port, protocol }) => [name, port, protocol]),
    ]),
    [
      [[['10.1.0.1', 'node', 'a']], ['10.1.0.2'], [['http', 8080, 'TCP']]],
      [[['10.1.0.4', 'node', 'other']], undefined, [['http', 9090, 'TCP']]],
    ],
  );
  const { metadata } = await plane.client(Endpoints).namespace('default').get('web');
  t.regex(metadata?.annotations?.['endpoints.kubernetes.io/last-change-trigger-time'] ?? '', /^\d{4}-.*Z$/);

  const before = await slices(plane);
  await setStatus(plane, await pods.get('b'), { ready: true, ip: '10.1.0.2' });
  await plane.client(Pod).namespace('default').delete('other', { gracePeriodSeconds: 0 });
  await pods.patch('a', 'merge', { metadata: { finalizers: ['a/b'] } });
  await pods.delete('a', { gracePeriodSeconds: 0 });
  await reaches(t, plane, ['10.1.0.1 a f t t 8080', '10.1.0.2 b t t f 8080']);
  const [after] = await slices(plane);
  t.true(
    before.some(({ metadata: old }) => old?.name === after?.metadata?.name),
    'endpoints remain in their slice',
  );
  await until(async () => ((await subsets(plane)) ?? [])[0]?.addresses?.[0]?.ip === '10.1.0.2');
  t.is(((await subsets(plane)) ?? [])[0]?.addresses?.length, 1, 'Endpoints contain no terminating pods');

  await pods.patch('b', 'merge', { metadata: { labels: { app: 'else' } } });
  await reaches(t, plane, ['10.1.0.1 a f t t 8080']);
  await plane.client(Service).namespace('default').delete('web');
  await until(async () => (await plane.client(Endpoints).namespace('default').list()).items.length === 0);
});

test('endpoints have the zone of their node, and hints for the preferred clients while they are ready', async (t) => {
  const plane = await start(t);
  const nodes = plane.client(Node);
  await nodes.create({ metadata: { name: 'node', labels: { 'topology.kubernetes.io/zone': 'a' } } });
  await addPod(plane, 'a', { ip: '10.1.0.1' });
  await addPod(plane, 'b', { ip: '10.1.0.2', ready: false });
  const services = plane.client(Service).namespace('default');
  await services.create(web({ trafficDistribution: 'PreferClose' }));
  const endpoints = async () =>
    (await slices(plane))
      .flatMap((slice) => slice.endpoints)
      .map(({ zone, hints }) => [
        zone,
        hints?.forZones?.map(({ name }) => name),
        hints?.forNodes?.map(({ name }) => name),
      ])
      .sort((a, b) => Number(b[1] !== undefined) - Number(a[1] !== undefined));
  const reached = async (expected: unknown) => {
    await until(async () => JSON.stringify(await endpoints()) === JSON.stringify(expected)).catch(() => {});
    t.deepEqual(await endpoints(), expected as never);
  };
  const unready = ['a', undefined, undefined];
  await reached([['a', ['a'], undefined], unready]);
  await services.patch('web', 'merge', { spec: { trafficDistribution: 'PreferSameNode' } });
  await reached([['a', ['a'], ['node']], unready]);
  await services.patch('web', 'merge', { spec: { trafficDistribution: null } });
  await reached([unready, unready]);
  await services.patch('web', 'merge', { spec: { trafficDistribution: 'PreferSameZone' } });
  await nodes.patch('node', 'merge', { metadata: { labels: { 'topology.kubernetes.io/zone': 'b' } } });
  await reached([
    ['b', ['b'], undefined],
    ['b', undefined, undefined],
  ]);
});

test('pods that are not ready are published on request, with their names in a headless service', async (t) => {
  const plane = await start(t);
  const services = plane.client(Service).namespace('default');
  await services.create(web({ publishNotReadyAddresses: true, clusterIP: 'None', ports: [] }));
  await addPod(plane, 'db-0', { ready: false, spec: { hostname: 'db-0', subdomain: 'web' } });
  await reaches(t, plane, ['10.1.0.1 db-0 t f f ']);
  const [slice] = await slices(plane);
  t.is(slice?.endpoints[0]?.hostname, 'db-0');
  t.is(slice?.endpoints[0]?.nodeName, 'node');
  t.is(slice?.metadata?.labels?.['service.kubernetes.io/headless'], '');
  await until(async () => ((await subsets(plane)) ?? [])[0]?.addresses?.[0]?.hostname === 'db-0');
  await services.patch('web', 'merge', { spec: { publishNotReadyAddresses: false } });
  await reaches(t, plane, ['10.1.0.1 db-0 f f f ']);
});

test('slices have at most 100 endpoints, Endpoints at most 1000, and a change of one pod writes one slice', async (t) => {
  const plane = await start(t);
  const count = 1010;
  const ip = (i: number) => `10.2.${i >> 8}.${i & 255}`;
  for (let i = 0; i < count; i++) await addPod(plane, `p${i}`, { ip: ip(i), ready: i !== 5 });
  await plane.client(Service).namespace('default').create(web());
  await until(async () => (await lines(plane)).length === count);
  const before = await slices(plane);
  t.is(before.length, 11);
  t.true(before.every(({ endpoints }) => endpoints.length <= 100));
  await until(async () => ((await subsets(plane)) ?? []).length === 1);
  const [subset] = (await subsets(plane)) ?? [];
  t.is((subset?.addresses?.length ?? 0) + (subset?.notReadyAddresses?.length ?? 0), 1000);
  const { metadata } = await plane.client(Endpoints).namespace('default').get('web');
  t.is(metadata?.annotations?.['endpoints.kubernetes.io/over-capacity'], 'truncated');

  await setStatus(plane, await plane.client(Pod).namespace('default').get('p5'), { ready: true, ip: ip(5) });
  await until(async () => (await lines(plane)).every((line) => line.includes(' t t f ')));
  const versions = new Map(before.map(({ metadata: old }) => [old?.name, old?.resourceVersion]));
  const changed = (await slices(plane)).filter(
    (now) => versions.get(now.metadata?.name) !== now.metadata?.resourceVersion,
  );
  t.is(changed.length, 1);
});

test('Endpoints of services without a selector are mirrored until they are skipped or removed', async (t) => {
  const plane = await start(t);
  const endpoints = plane.client(Endpoints).namespace('default');
  const ports = [{ name: 'pg', port: 5432 }];
  const mirrored = async (expected: string[]) => {
    await reaches(t, plane, expected);
    const labels = (await slices(plane)).map(({ metadata }) => metadata?.labels?.[managedBy]);
    t.true(labels.every((label) => label === 'endpointslicemirroring-controller.k8s.io') || expected.length === 0);
  };
  await endpoints.create({
    metadata: { name: 'db' },
    subsets: [
      { addresses: [{ ip: '192.000.2.1' }, { ip: '2001:db8::1' }], notReadyAddresses: [{ ip: '192.0.2.2' }], ports },
    ],
  });
  await plane
    .client(Service)
    .namespace('default')
    .create({ metadata: { name: 'db' }, spec: { ports: [{ name: 'pg', port: 5432 }] } });
  await until(async () => (await lines(plane)).length === 3);
  t.deepEqual(await lines(plane), ['192.0.2.1 - t u u 5432', '192.0.2.2 - f u u 5432', '2001:db8::1 - t u u 5432']);
  await endpoints.patch('db', 'merge', { subsets: [{ addresses: [{ ip: '192.0.2.9' }], ports }] });
  await until(async () => (await lines(plane)).join() === '192.0.2.9 - t u u 5432');
  await endpoints.patch('db', 'merge', { metadata: { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } } });
  await until(async () => (await lines(plane)).length === 0);
  await mirrored([]);
});

test('a slice mirrors at most 1000 addresses with the same ports; skipped ones are reported', async (t) => {
  const plane = await start(t);
  const endpoints = plane.client(Endpoints).namespace('default');
  const addresses = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      ip: `192.0.${Math.floor((from + i) / 250)}.${((from + i) % 250) + 1}`,
    }));
  const ports = [{ name: 'pg', port: 5432 }];
  await plane
    .client(Service)
    .namespace('default')
    .create({ metadata: { name: 'db' }, spec: { ports: [{ name: 'pg', port: 5432 }] } });
  const subsets = [
    { addresses: addresses(0, 600), ports },
    { addresses: addresses(600, 402), ports },
  ];
  await endpoints.create({ metadata: { name: 'db' }, subsets });
  await until(async () => (await slices(plane))[0]?.endpoints.length === 1000);
  t.is((await slices(plane)).length, 1);
  const event = await until(async () =>
    (await plane.client(Event).namespace('default').list()).items.find(
      ({ reason }) => reason === 'TooManyAddressesToMirror',
    ),
  );
  t.is(
    event.message,
    'A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped',
  );
});

test('a service that loses its selector keeps its slices, and an unnamed port of Endpoints has no name', async (t) => {
  const plane = await start(t);
  await addPod(plane, 'a', { ip: '10.1.0.1' });
  const services = plane.client(Service).namespace('default');
  await services.create(web({ ports: [{ port: 80, targetPort: 'http' }] }));
  await until(async () => (await lines(plane)).join() === '10.1.0.1 a t t f 8080');
  await until(async () => ((await subsets(plane)) ?? []).length === 1);
  t.false('name' in ((await subsets(plane))?.[0]?.ports?.[0] ?? { name: '' }));
  t.is((await slices(plane))[0]?.ports?.[0]?.name, '');
  const controlled = async () =>
    (await slices(plane)).filter(({ metadata }) => metadata?.labels?.[managedBy] === 'endpointslice-controller.k8s.io');
  await services.patch('web', 'merge', { spec: { selector: null } });
  await until(async () => (await slices(plane)).length === 2, 'the Endpoints are mirrored from now on');
  t.is((await controlled()).length, 1);
});
