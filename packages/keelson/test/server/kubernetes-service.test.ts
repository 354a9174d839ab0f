import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { EndpointSlice, Endpoints, Lease, Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { createControlPlane } from '../../src/index.ts';
import { type AdvertisedAddress, KubernetesService } from '../../src/server/kubernetes-service.ts';

test('the service "kubernetes" has the addresses of all servers whose leases are renewed', async (t) => {
  await using plane = await createControlPlane({ controllers: false });
  const clock = new FakeClock();
  const server = async (address: AdvertisedAddress) => {
    const service = new KubernetesService({ api: plane.api, clock, logger: silentLogger }, address);
    t.teardown(() => service.stop());
    await service.start();
    return service;
  };
  const addresses = async () =>
    ((await plane.client(Endpoints).namespace('default').get('kubernetes')).subsets ?? []).map(
      ({ addresses: own = [], ports = [] }) => `${own.map(({ ip }) => ip).join()}:${ports[0]?.port}`,
    );
  const slices = async () =>
    (await plane.client(EndpointSlice).namespace('default').list()).items
      .map(({ metadata, endpoints }) => `${metadata?.name} ${endpoints.map((one) => one.addresses[0]).join()}`)
      .sort();
  const advance = async (expected: string[]) => {
    await until(async () => {
      clock.advance(10_000);
      return (await addresses()).join(' ') === expected.join(' ');
    });
    t.deepEqual(await addresses(), expected);
  };

  const first = await server({ ip: '192.0.2.1', port: 6443 });
  t.deepEqual(await addresses(), ['192.0.2.1:6443']);
  await server({ ip: '192.0.2.2', port: 6443 });
  const last = await server({ ip: '2001:db8::3', port: 7443 });
  await server({ ip: '127.0.0.1', port: 6443 });
  t.deepEqual(await addresses(), ['192.0.2.1,192.0.2.2:6443', '2001:db8::3:7443'], 'no loopback addresses');
  t.deepEqual(await slices(), ['kubernetes 192.0.2.1,192.0.2.2', 'kubernetes-ipv6-7443 2001:db8::3']);
  t.is(
    (await plane.client(Service).namespace('default').get('kubernetes')).spec.clusterIP,
    '127.0.0.1',
    'the last start',
  );

  await last.stop();
  t.deepEqual(await addresses(), ['192.0.2.1,192.0.2.2:6443'], 'a stopped server is removed at once');
  t.deepEqual(await slices(), ['kubernetes 192.0.2.1,192.0.2.2']);

  // A killed server leaves its lease behind.
  const leases = plane.client(Lease).namespace('kube-system');
  await first.stop();
  await advance(['192.0.2.2:6443']);
  await leases.create({
    metadata: { name: 'apiserver-killed', labels: { 'apiserver.kubernetes.io/identity': 'kube-apiserver' } },
    spec: { holderIdentity: '192.0.2.9:6443', renewTime: '2030-01-01T00:00:00.000000Z' },
  });
  await until(async () => {
    clock.advance(10_000);
    return (await addresses()).join().includes('192.0.2.9');
  });
  await advance(['192.0.2.2:6443']);
  await until(async () => !(await leases.list()).items.some(({ metadata }) => metadata?.name === 'apiserver-killed'));
  await plane.client(Endpoints).namespace('default').delete('kubernetes');
  await until(async () => {
    clock.advance(10_000);
    return (await addresses()).length === 1;
  });
  t.deepEqual(await addresses(), ['192.0.2.2:6443'], 'deleted objects are written again');
});
