import { once } from 'node:events';
import { get } from 'node:http';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { EndpointSlice, Service } from '@keelson/kinds';
import { freePort, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { ServiceProxy, type ServiceProxyOptions } from '../src/index.ts';
import { addService, type Cluster, cluster, listen, machineAddress } from './support/cluster.ts';

const onNetwork = machineAddress === undefined ? test.skip : test;

/** Addresses of the loopback range that no other test uses: by the process and a counter. */
let used = 0;
function clusterIp(): string {
  used += 1;
  return `127.97.${process.pid % 250}.${used}`;
}

async function start(
  t: ExecutionContext,
  { table, events }: Cluster,
  options: Partial<ServiceProxyOptions> = {},
): Promise<{ proxy: ServiceProxy; clock: FakeClock }> {
  const clock = new FakeClock();
  const proxy = new ServiceProxy({
    ...{ table, events, clock, logger: silentLogger, metrics: noMetrics },
    localNodes: () => new Set(['here']),
    nodePortAddresses: ['127.0.0.1'],
    ...options,
  });
  t.teardown(() => proxy.stop());
  await proxy.start();
  return { proxy, clock };
}

const say = (name: string) => createServer((socket) => socket.on('error', () => {}).end(name));

async function read(address: string, port: number): Promise<string> {
  const socket = connect({ host: address, port });
  return text(socket).catch((error: NodeJS.ErrnoException) => error.code ?? 'failed');
}

onNetwork(
  'cluster IPs, external IPs and node ports are forwarded to the endpoints, and released with the service',
  async (t) => {
    const here = await cluster(t);
    const { proxy } = await start(t, here);
    const ip = clusterIp();
    const nodePort = await freePort();
    const externalIPs = [machineAddress ?? ''];
    const port = await freePort();
    await addService(here, 'web', { clusterIP: ip, externalIPs, type: 'NodePort', ports: [{ port, nodePort }] }, [
      { port: await listen(t, say('a')) },
      { port: await listen(t, say('b')) },
    ]);
    await until(() => proxy.addresses.length === 3);
    const answers = () => Promise.all(Array.from({ length: 4 }, () => read(ip, port)));
    await until(async () => new Set(await answers()).size === 2);
    t.deepEqual((await answers()).sort(), ['a', 'a', 'b', 'b'], 'in turn');
    t.regex(await read('127.0.0.1', nodePort), /^[ab]$/);
    t.regex(await read(externalIPs[0] ?? '', port), /^[ab]$/);
    await here.api.resource(EndpointSlice).namespace('default').delete('web-1');
    await until(async () => (await answers()).join('') === 'aaaa');
    await here.api.resource(EndpointSlice).namespace('default').delete('web-0');
    await until(async () => (await read(ip, port)) === 'ECONNREFUSED');
    t.is(proxy.addresses.length, 0, 'ports without endpoints are closed');
    await here.api.resource(Service).namespace('default').delete('web');
    await until(() => proxy.addresses.length === 0);
    t.is(await read(ip, port), 'ECONNREFUSED');
    t.is(await read('127.0.0.1', nodePort), 'ECONNREFUSED');
  },
);

onNetwork(
  'the policy Local uses only endpoints of this node, and the health check port reports their number',
  async (t) => {
    const here = await cluster(t);
    const { proxy } = await start(t, here);
    const [ip, nodePort, healthCheckNodePort] = [clusterIp(), await freePort(), await freePort()];
    await addService(
      here,
      'local',
      {
        ...{ clusterIP: ip, type: 'LoadBalancer', healthCheckNodePort, externalTrafficPolicy: 'Local' },
        internalTrafficPolicy: 'Cluster',
        ports: [{ port: 8080, nodePort }],
      },
      [
        { port: await listen(t, say('near')), nodeName: 'here' },
        { port: await listen(t, say('far')), nodeName: 'there' },
      ],
    );
    const health = async () => {
      const [answer] = await once(get({ host: '127.0.0.1', port: healthCheckNodePort }), 'response');
      return `${answer.statusCode} ${await text(answer)}`;
    };
    await until(() => proxy.addresses.length === 3);
    await until(async () => (await health()).startsWith('200'));
    t.is(await health(), '200 {"service":{"namespace":"default","name":"local"},"localEndpoints":1}');
    for (let i = 0; i < 4; i++) t.is(await read('127.0.0.1', nodePort), 'near');
    const inside = await Promise.all([read(ip, 8080), read(ip, 8080)]);
    t.deepEqual(inside.sort(), ['far', 'near']);
    await here.api.resource(EndpointSlice).namespace('default').delete('local-0');
    await until(async () => (await health()).startsWith('503'));
    await until(async () => (await read('127.0.0.1', nodePort)) === 'ECONNREFUSED');
  },
);

onNetwork('an address in use is reported once, and served when it is released', async (t) => {
  const here = await cluster(t);
  const { proxy, clock } = await start(t, here);
  const ip = clusterIp();
  const other = createServer();
  other.listen(8080, ip);
  await once(other, 'listening');
  await addService(here, 'web', { clusterIP: ip, ports: [{ port: 8080 }] }, [{ port: await listen(t, say('a')) }]);
  await until(() => here.recorded.length > 0);
  clock.advance(10_000);
  other.close();
  await once(other, 'close');
  await until(() => {
    clock.advance(10_000);
    return proxy.addresses.length === 1;
  });
  t.is(await read(ip, 8080), 'a');
  t.deepEqual(here.recorded, [`web FailedToListen cannot listen on TCP ${ip}:8080: another process uses the address`]);
});

onNetwork('a shared proxy on the same machine takes over when the other one stops, without an event', async (t) => {
  const here = await cluster(t);
  const first = await start(t, here);
  const ip = clusterIp();
  await addService(here, 'web', { clusterIP: ip, ports: [{ port: 8080 }] }, [{ port: await listen(t, say('a')) }]);
  await until(() => first.proxy.addresses.length === 1);
  const second = await start(t, here, { isShared: true });
  t.deepEqual(second.proxy.addresses, []);
  await first.proxy.stop();
  await until(() => {
    second.clock.advance(10_000);
    return second.proxy.addresses.length === 1;
  });
  t.is(await read(ip, 8080), 'a');
  t.deepEqual(here.recorded, []);
});

onNetwork('services that are not selected are not served', async (t) => {
  const here = await cluster(t);
  const { proxy } = await start(t, here, { serves: ({ name }) => name === 'web' });
  const targets = [{ port: await listen(t, say('a')) }];
  const nodePort = await freePort();
  await addService(
    here,
    'other',
    { clusterIP: clusterIp(), type: 'NodePort', ports: [{ port: 80, nodePort }] },
    targets,
  );
  const ip = clusterIp();
  await addService(here, 'web', { clusterIP: ip, ports: [{ port: 8080 }] }, targets);
  await until(() => proxy.addresses.length > 0);
  t.deepEqual(proxy.addresses, [`TCP ${ip}:8080`]);
});

onNetwork('a pod may listen at all addresses on the port of its service', async (t) => {
  const here = await cluster(t);
  const { proxy, clock } = await start(t, here);
  const [ip, port] = [clusterIp(), await freePort()];
  await addService(here, 'web', { clusterIP: ip, ports: [{ port }] }, [{ port, nodeName: 'here' }]);
  await addService(here, 'other', { clusterIP: clusterIp(), ports: [{ port: 8080 }] }, [
    { port: await listen(t, say('other')) },
  ]);
  await until(() => proxy.addresses.length > 0);
  t.is(proxy.addresses.length, 1, 'the port is free for the pod, which is ready before it listens');
  const pod = say('pod');
  t.teardown(() => pod.close());
  pod.listen(port, '0.0.0.0');
  await once(pod, 'listening');
  clock.advance(1_000);
  t.is(await read(ip, port), 'pod');
  pod.close();
  await once(pod, 'close');
  pod.listen(port, machineAddress);
  await once(pod, 'listening');
  await until(() => {
    clock.advance(10_000);
    return proxy.addresses.length === 2;
  });
  t.is(await read(ip, port), 'pod', 'a pod that listens at its own address only gets the connections of the proxy');
  t.deepEqual(here.recorded, []);
});

onNetwork('headless services, ExternalName services and the service kubernetes are not served', async (t) => {
  const here = await cluster(t);
  const { proxy } = await start(t, here);
  const ports = [{ port: 8080 }];
  const endpoints = [{ port: await listen(t, say('a')) }];
  await addService(here, 'headless', { clusterIP: 'None', ports }, endpoints);
  await addService(here, 'alias', { type: 'ExternalName', externalName: 'example.com' }, []);
  await addService(here, 'kubernetes', { clusterIP: '127.0.0.1', ports }, endpoints);
  await addService(here, 'web', { clusterIP: clusterIp(), ports }, endpoints);
  await until(() => proxy.addresses.length > 0);
  t.is(proxy.addresses.length, 1);
});
