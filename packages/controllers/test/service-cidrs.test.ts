import { ControllerManager } from '@keelson/controller-kit';
import { type FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { IPAddress, ServiceCIDR } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { serviceCidrController } from '../src/index.ts';
import { startTestPlane } from './support/test-plane.ts';

async function start(t: ExecutionContext) {
  const plane = await startTestPlane({ controllers: false, fakeClock: true });
  const clock = plane.clock as FakeClock;
  const context = { client: plane.api, clock, logger: silentLogger, metrics: noMetrics };
  const manager = new ControllerManager({ ...context, controllers: [serviceCidrController] });
  t.teardown(async () => {
    await manager.stop();
    await plane.close();
  });
  await manager.start();
  const networks = plane.client(ServiceCIDR);
  const addresses = plane.client(IPAddress);
  return {
    clock,
    networks,
    addresses,
    network: (name: string, ...cidrs: string[]) => networks.create({ metadata: { name }, spec: { cidrs } }),
    /** The address of a service, as a server creates it. */
    address: (name: string) =>
      addresses.create({
        metadata: { name, labels: { 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' } },
        spec: { parentRef: { resource: 'services', namespace: 'default', name: 'web' } },
      }),
    condition: async (name: string) => {
      const { type, status, reason } = (await networks.get(name)).status?.conditions?.[0] ?? {};
      return `${type}=${status} ${reason}`;
    },
    /** Number of runs of the controller. */
    runs: () => manager.trace(serviceCidrController.name).length,
    exists: async (name: string) => (await networks.list()).items.some(({ metadata }) => metadata.name === name),
  };
}

test('a ServiceCIDR becomes ready and is protected', async (t) => {
  const { network, networks, condition } = await start(t);
  await network('a', '10.0.0.0/24');
  await until(async () => (await condition('a')) === 'Ready=True ');
  t.deepEqual((await networks.get('a')).metadata.finalizers, ['networking.k8s.io/service-cidr-finalizer']);
});

test('a ServiceCIDR that is being deleted stays while a service has one of its addresses', async (t) => {
  const { clock, network, networks, addresses, address, condition, exists } = await start(t);
  await network('a', '10.0.0.0/24', 'fd00::/64');
  await address('fd00::5');
  await until(async () => (await condition('a')) === 'Ready=True ');
  await networks.delete('a');
  await until(async () => (await condition('a')) === 'Ready=False Terminating');
  clock.advance(20_000);
  t.true(await exists('a'));
  await addresses.delete('fd00::5');
  await until(async () => !(await exists('a')));
});

test('a ServiceCIDR without addresses stays for ten seconds, in which servers learn of its deletion', async (t) => {
  const { clock, network, networks, condition, exists, runs } = await start(t);
  await network('a', '10.0.0.0/24');
  await until(async () => (await condition('a')) === 'Ready=True ');
  const before = runs();
  await networks.delete('a');
  await until(() => runs() > before);
  clock.advance(8_000);
  t.true(await exists('a'));
  await until(async () => {
    clock.advance(1_000);
    return !(await exists('a'));
  });
});

test('addresses in another ServiceCIDR, and those of other programs, do not keep one', async (t) => {
  const { clock, network, networks, addresses, address, condition, exists } = await start(t);
  await network('small', '10.0.0.0/24');
  await address('10.0.0.5');
  await addresses.create({
    metadata: { name: '10.0.0.6' },
    spec: { parentRef: { group: 'example.com', resource: 'gateways', name: 'g' } },
  });
  await until(async () => (await condition('small')) === 'Ready=True ');
  await networks.delete('small');
  await until(async () => (await condition('small')) === 'Ready=False Terminating');
  await network('large', '10.0.0.0/16');
  await until(async () => {
    clock.advance(1_000);
    return !(await exists('small'));
  });
  t.true(await exists('large'));
  t.is((await addresses.list()).items.length, 2);
});
