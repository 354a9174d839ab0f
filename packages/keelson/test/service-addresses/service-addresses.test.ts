import { randomInt } from 'node:crypto';
import { isStatusError, type KubeObject } from '@keelson/core';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { Event, IPAddress, Namespace, Service, ServiceCIDR } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from '../../src/index.ts';
import { AddressRange, canonicalAddress, parsePortRange } from '../../src/service-addresses/address-range.ts';
import { serviceClaims } from '../../src/service-addresses/claims.ts';
import { sharedStore } from '../support/shared-store.ts';

async function plane(t: ExecutionContext, options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const made = await createControlPlane({ controllers: false, ...options });
  t.teardown(() => made.close());
  return made;
}

function service(name: string, spec: Partial<Service['spec']> = {}): Service {
  return { metadata: { name, namespace: 'default' }, spec: { ports: [{ port: 80 }], ...spec } };
}

const claimsOf = (made: ControlPlane, store: Store) =>
  serviceClaims(
    () => made.api,
    () => store,
  );
const servicesOf = (made: ControlPlane) => made.client(Service).namespace('default');

async function rejected(t: ExecutionContext, call: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(call);
  if (!isStatusError(error)) throw error ?? new Error('accepted');
  return `${error.status.code} ${error.message}`;
}

test('a service gets an address of the range and keeps it; headless and external names get none', async (t) => {
  const services = servicesOf(await plane(t));
  const made = await services.create(service('web'));
  t.regex(made.spec.clusterIP ?? '', /^127\.96\.\d+\.\d+$/);
  t.deepEqual(made.spec.clusterIPs, [made.spec.clusterIP]);
  t.deepEqual([made.spec.ipFamilies, made.spec.ipFamilyPolicy], [['IPv4'], 'SingleStack']);
  const { clusterIP, clusterIPs, ...rest } = made.spec;
  const updated = await services.update({ ...made, spec: { ...rest, ports: [{ port: 81 }] } });
  t.deepEqual([updated.spec.clusterIP, updated.spec.clusterIPs], [clusterIP, clusterIPs]);

  const headless = await services.create(service('headless', { clusterIP: 'None', selector: { app: 'a' } }));
  t.deepEqual([headless.spec.clusterIP, headless.spec.clusterIPs], ['None', ['None']]);
  const alias = await services.create(service('alias', { type: 'ExternalName', externalName: 'example.com' }));
  t.is(alias.spec.clusterIP, undefined);
});

test('requested addresses and ports are given once, and rejections have the messages of Kubernetes', async (t) => {
  const services = servicesOf(await plane(t));
  const ip = '127.96.0.10';
  await services.create(service('a', { clusterIP: ip, type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] }));
  const cases: [Partial<Service['spec']>, string][] = [
    [
      { clusterIP: ip },
      '422 Service "b" is invalid: spec.clusterIPs: Invalid value: ["127.96.0.10"]: failed to allocate IP 127.96.0.10: provided IP is already allocated',
    ],
    [
      { clusterIP: '127.96.00.10' },
      '422 Service "b" is invalid: spec.clusterIPs: Invalid value: ["127.96.00.10"]: failed to allocate IP 127.96.00.10: provided IP is already allocated',
    ],
    [
      { clusterIP: '10.0.0.1' },
      '422 Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: the provided IP (10.0.0.1) is not in the valid range. The range of valid IPs is 127.96.0.0/16',
    ],
    [
      { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] },
      '422 Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated',
    ],
    [
      { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] },
      '422 Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    ],
    [
      { ipFamilies: ['IPv6'] },
      '422 Service "b" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
    ],
    [
      { ipFamilyPolicy: 'RequireDualStack' },
      '422 Service "b" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    ],
  ];
  for (const [spec, message] of cases) t.is(await rejected(t, services.create(service('b', spec))), message);
  // A failed create releases what it had claimed before the failure.
  const twice = { clusterIP: '127.96.0.11', type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] };
  await rejected(t, services.create(service('c', twice)));
  t.is((await services.create(service('c', { clusterIP: '127.96.0.11' }))).spec.clusterIP, '127.96.0.11');
  t.regex(await rejected(t, services.create(service('c', { clusterIP: '127.96.0.12' }))), /^409/);
  t.is((await services.create(service('d', { clusterIP: '127.96.0.12' }))).spec.clusterIP, '127.96.0.12');
});

test('addresses and ports are released by deletion and by changes of the type', async (t) => {
  const store = sharedStore(t);
  const made = await plane(t, { storage: store });
  const services = servicesOf(made);
  const { address, port } = claimsOf(made, store);
  const held = async () => [...(await address.values()), ...(await port.values())].sort();
  const web = await services.create(
    service('web', { clusterIP: '127.96.0.9', type: 'NodePort', ports: [{ port: 80, nodePort: 30_001 }] }),
  );
  t.deepEqual(await held(), ['127.96.0.9', '30001']);
  const plain = await services.patch('web', 'merge', { spec: { type: 'ClusterIP', ports: [{ port: 80 }] } });
  t.is(plain.spec.ports?.[0]?.nodePort, undefined);
  t.deepEqual(await held(), ['127.96.0.9']);
  await services.patch('web', 'merge', {
    spec: { type: 'ExternalName', externalName: 'example.com', clusterIP: null, clusterIPs: null },
  });
  t.deepEqual(await held(), []);
  const back = await services.update({ ...web, metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } });
  t.deepEqual(await held(), [back.spec.clusterIP]);

  await services.create(service('kept', { clusterIP: '127.96.0.8' }), { dryRun: true });
  const dry = await services.create(service('dry', { type: 'NodePort' }), { dryRun: true });
  t.truthy(dry.spec.clusterIP && dry.spec.ports?.[0]?.nodePort);
  t.deepEqual(await held(), [back.spec.clusterIP], 'a dry run allocates nothing');

  const finalized = {
    ...service('late', { clusterIP: '127.96.0.7' }),
    metadata: { name: 'late', finalizers: ['a/b'] },
  };
  await services.create(finalized);
  await services.delete('web');
  await services.delete('late');
  t.deepEqual(await held(), ['127.96.0.7'], 'kept until the finalizer is removed');
  await services.patch('late', 'merge', { metadata: { finalizers: null } });
  t.deepEqual(await held(), []);
});

test('ports of several protocols share a node port, and load balancers get a port for health checks', async (t) => {
  const services = servicesOf(await plane(t));
  const dns = await services.create(
    service('dns', {
      type: 'NodePort',
      ports: [
        { name: 'udp', port: 53, protocol: 'UDP' },
        { name: 'tcp', port: 53, protocol: 'TCP' },
        { name: 'metrics', port: 9153 },
      ],
    }),
  );
  const [udp, tcp, metrics] = (dns.spec.ports ?? []).map(({ nodePort }) => nodePort);
  t.is(udp, tcp);
  t.not(udp, metrics);
  const balanced = await services.create(service('lb', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }));
  t.true((balanced.spec.healthCheckNodePort ?? 0) >= 30_000);
  const without = await services.create(
    service('none', { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }),
  );
  t.is(without.spec.ports?.[0]?.nodePort, undefined);
});

test('services have addresses of both families with two ranges', async (t) => {
  const services = servicesOf(await plane(t, { services: { serviceClusterIpRange: '10.96.0.0/24,fd00:10:96::/112' } }));
  const both = await services.create(service('both', { ipFamilyPolicy: 'PreferDualStack' }));
  t.deepEqual(both.spec.ipFamilies, ['IPv4', 'IPv6']);
  t.regex(both.spec.clusterIPs?.[1] ?? '', /^fd00:10:96::[0-9a-f]+$/);
  const one = await services.create(service('one', { ipFamilies: ['IPv6'] }));
  t.deepEqual([one.spec.clusterIPs?.length, one.spec.clusterIP?.startsWith('fd00:10:96::')], [1, true]);
});

test('two planes on one store never give an address or a port twice, and a full range is an error', async (t) => {
  const seed = randomInt(2 ** 31);
  let state = seed;
  const random = (n: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state % n;
  };
  const store = sharedStore(t);
  // 29 addresses and 12 ports for up to 60 services: both run out.
  const ranges = { serviceClusterIpRange: '10.0.0.0/27', serviceNodePortRange: '30000-30011' };
  const planes = [
    await plane(t, { storage: store, services: ranges }),
    await plane(t, { storage: store, services: ranges }),
  ];
  const names = Array.from({ length: 60 }, (_, i) => `s${i}`);
  const full: string[] = [];
  const once = async (name: string): Promise<void> => {
    const services = servicesOf(planes[random(2)] as ControlPlane);
    const type = random(3) === 0 ? 'NodePort' : 'ClusterIP';
    const wanted = random(4) === 0 ? { clusterIP: `10.0.0.${1 + random(30)}` } : {};
    try {
      const action = random(4);
      if (action === 0) await services.delete(name);
      else if (action === 1) await services.patch(name, 'merge', { spec: { type, ports: [{ port: 80 }] } });
      else await services.create(service(name, { type, ...wanted }));
    } catch (error) {
      if (!isStatusError(error)) throw error;
      if (error.status.code === 500) full.push(error.message);
      else t.true([404, 409, 422].includes(error.status.code ?? 0), `seed ${seed}: ${error.message}`);
    }
  };
  for (let round = 0; round < 12; round++) {
    await Promise.all(names.map(once));
    const { items } = await servicesOf(planes[round % 2] as ControlPlane).list();
    const addresses = items.map(({ spec }) => spec.clusterIP);
    const ports = items.flatMap(({ spec }) => spec.ports?.flatMap(({ nodePort }) => nodePort ?? []) ?? []);
    t.is(new Set(addresses).size, addresses.length, `seed ${seed}: addresses`);
    t.is(new Set(ports).size, ports.length, `seed ${seed}: ports`);
    const claims = claimsOf(planes[0] as ControlPlane, store);
    t.deepEqual([...(await claims.address.values())].sort(), [...addresses].sort(), `seed ${seed}: nothing leaks`);
    t.deepEqual([...(await claims.port.values())].sort(), ports.map(String).sort(), `seed ${seed}: nothing leaks`);
  }
  for (let i = 0; i < 30; i++)
    await servicesOf(planes[0] as ControlPlane)
      .create(service(`f${i}`))
      .catch(() => {});
  t.is(
    await rejected(t, servicesOf(planes[1] as ControlPlane).create(service('last'))),
    '500 Internal error occurred: failed to allocate a serviceIP: range is full',
    `seed ${seed}; before: ${full.length}`,
  );
});

test('the repair records addresses of older services, reports wrong ones and releases those without a service', async (t) => {
  const store = sharedStore(t);
  // A plane without the built-in kinds stores services as an older version did: without records.
  const wide = await plane(t, {
    storage: store,
    services: { serviceClusterIpRange: '10.0.0.0/12', serviceNodePortRange: '1-65535' },
  });
  const write = (name: string, spec: Partial<Service['spec']>) => servicesOf(wide).create(service(name, spec));
  await write('kept', { clusterIP: '10.0.0.5' });
  await write('twin', { clusterIP: '10.1.0.5' });
  await write('outside', { clusterIP: '10.2.0.5', type: 'NodePort', ports: [{ port: 80, nodePort: 999 }] });
  const before = claimsOf(wide, store);
  for (const claims of [before.address, before.port])
    for (const claim of await claims.list()) await claims.remove(claim);
  await before.address.claim('10.0.0.77', { namespace: 'default', name: 'gone' });
  await wide.client(ServiceCIDR).delete('kubernetes');
  await wide.close();

  const clock = new FakeClock();
  const made = await plane(t, { storage: store, clock, services: { serviceClusterIpRange: '10.0.0.0/16' } });
  const { address } = claimsOf(made, store);
  t.deepEqual(await address.owner('10.0.0.5'), { namespace: 'default', name: 'kept' });
  const reasons = async () =>
    (await made.client(Event).namespace('default').list()).items
      .map(({ involvedObject, reason }) => `${involvedObject?.name} ${reason}`)
      .sort();
  await until(async () => (await reasons()).length === 4);
  t.deepEqual(await reasons(), [
    'kept ClusterIPNotAllocated',
    'outside ClusterIPOutOfRange',
    'outside PortOutOfRange',
    'twin ClusterIPOutOfRange',
  ]);
  t.truthy(await address.owner('10.0.0.77'), 'its service may be about to be stored');
  await until(async () => {
    clock.advance(180_000);
    return (await address.owner('10.0.0.77')) === undefined;
  });
  t.is((await reasons()).length, 4, 'events are not repeated');
});

test('ranges are checked', (t) => {
  for (const text of ['10.0.0.0', '10.0.0.0/33', '10.0.0.0/31', 'fd00::/127', 'x/24'])
    t.throws(() => new AddressRange(text, '--service-cluster-ip-range'), { message: /^--service-cluster-ip-range: / });
  for (const text of ['1', '0-5', '5-4', '1-65536']) t.throws(() => parsePortRange(text, '--service-node-port-range'));
  const range = new AddressRange('10.0.0.77/24', '');
  t.deepEqual([range.text, range.at(1), range.last], ['10.0.0.0/24', '10.0.0.1', 254]);
  const inside: [string, boolean][] = [
    ['10.0.0.0', false],
    ['10.0.0.1', true],
    ['10.0.0.254', true],
    ['10.0.0.255', false],
    ['10.0.1.1', false],
    ['::1', false],
  ];
  for (const [address, expected] of inside) t.is(range.has(address), expected, address);
  const large = new AddressRange('fd00::/64', '');
  t.deepEqual(
    [large.last, large.has('fd00::ffff:ffff:ffff:ffff'), large.has('fd00:0:0:1::')],
    [2 ** 20 - 1, true, false],
  );
  t.is(canonicalAddress('fd00:0:0:0::00a1'), 'fd00::a1');
  t.is(canonicalAddress('::ffff:1.2.3.4'), canonicalAddress('::ffff:102:304'));
});

test('services of a namespace that is deleted release their addresses', async (t) => {
  const store = sharedStore(t);
  const made = await plane(t, { storage: store, controllers: true });
  const namespace: KubeObject = { metadata: { name: 'short' } };
  await made.client(Namespace).create(namespace);
  await made
    .client(Service)
    .namespace('short')
    .create({ ...service('web'), metadata: { name: 'web' } });
  const { address } = claimsOf(made, store);
  t.is((await address.values()).size, 1);
  await made.client(Namespace).delete('short');
  await until(async () => (await address.values()).size === 0);
  t.pass();
});

test('a cluster IP is an IPAddress that names its service; addresses of others are not allocated, and stay', async (t) => {
  const clock = new FakeClock();
  const store = sharedStore(t);
  const made = await plane(t, { storage: store, clock, services: { serviceClusterIpRange: '10.0.0.0/29' } });
  const addresses = made.client(IPAddress);
  const parentRef = { group: 'example.com', resource: 'gateways', namespace: 'default', name: 'g' };
  await addresses.create({ metadata: { name: '10.0.0.2' }, spec: { parentRef } });
  await servicesOf(made).create(service('web', { clusterIP: '10.0.0.1' }));
  const { metadata, spec } = await addresses.get('10.0.0.1');
  t.deepEqual(spec.parentRef, { resource: 'services', namespace: 'default', name: 'web' });
  t.deepEqual(metadata.labels, {
    'ipaddress.kubernetes.io/ip-family': 'IPv4',
    'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
  });
  t.regex(
    await rejected(t, servicesOf(made).create(service('taken', { clusterIP: '10.0.0.2' }))),
    /provided IP is already allocated/,
  );
  const others = await Promise.all(['c', 'd', 'e', 'f'].map((name) => servicesOf(made).create(service(name))));
  t.deepEqual(others.map(({ spec: { clusterIP } }) => clusterIP).sort(), [
    '10.0.0.3',
    '10.0.0.4',
    '10.0.0.5',
    '10.0.0.6',
  ]);
  const { port } = claimsOf(made, store);
  await port.claim('30001', { namespace: 'default', name: 'gone' });
  await until(async () => {
    clock.advance(180_000);
    return (await port.owner('30001')) === undefined;
  }, 'two passes of the repair');
  t.is((await addresses.list()).items.length, 6);
});

test('addresses are also allocated from ServiceCIDRs that are ready and stay', async (t) => {
  const made = await plane(t, { services: { serviceClusterIpRange: '10.0.0.0/30,fd00:1::/126' } });
  const networks = made.client(ServiceCIDR);
  const kubernetes = await networks.get('kubernetes');
  t.deepEqual(kubernetes.spec.cidrs, ['10.0.0.0/30', 'fd00:1::/126']);
  t.like(kubernetes.status?.conditions?.[0], { type: 'Ready', status: 'True', reason: '' });
  await networks.create({ metadata: { name: 'more' }, spec: { cidrs: ['10.1.0.0/24', 'fd00::/64'] } });
  const services = servicesOf(made);
  const outside = /is not in the valid range. The range of valid IPs is 10.0.0.0\/30$/;
  t.regex(await rejected(t, services.create(service('early', { clusterIP: '10.1.0.5' }))), outside);
  const ready = { type: 'Ready', status: 'True', reason: '', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  await networks.patchSubresource('more', 'status', 'merge', { status: { conditions: [ready] } });
  const dual = (name: string) => services.create(service(name, { ipFamilyPolicy: 'PreferDualStack' }));
  await until(() => services.create(service('early', { clusterIP: '10.1.0.5' })).catch(() => undefined));
  const made4 = await Promise.all(['a', 'b', 'c', 'd'].map(dual));
  const all = made4.flatMap(({ spec }) => spec.clusterIPs ?? []);
  t.is(new Set(all).size, 8);
  t.is(all.filter((address) => address.startsWith('10.1.0.')).length, 2, 'the first network has two addresses');
  t.is(all.filter((address) => address.startsWith('fd00::')).length, 1, 'the first network has three addresses');
  await networks.patch('more', 'merge', { metadata: { finalizers: ['example.com/kept'] } });
  await networks.delete('more');
  await until(async () =>
    outside.test(await rejected(t, services.create(service('late', { clusterIP: '10.1.0.77' }), { dryRun: true }))),
  );
});

test('a server with another network than the ServiceCIDR kubernetes warns once and uses both', async (t) => {
  const store = sharedStore(t);
  await (await plane(t, { storage: store, services: { serviceClusterIpRange: '10.0.0.0/24' } })).close();
  const clock = new FakeClock();
  const warnings: string[] = [];
  const logger = { ...silentLogger, child: () => logger, warn: (message: string) => warnings.push(message) };
  const options = { storage: store, clock, logger, services: { serviceClusterIpRange: '10.1.0.0/24' } };
  const made = await plane(t, options);
  const services = servicesOf(made);
  t.regex((await services.create(service('own'))).spec.clusterIP ?? '', /^10\.1\.0\./);
  t.is((await services.create(service('both', { clusterIP: '10.0.0.5' }))).spec.clusterIP, '10.0.0.5');
  const { port } = claimsOf(made, store);
  await port.claim('30001', { namespace: 'default', name: 'gone' });
  await until(async () => {
    clock.advance(180_000);
    return (await port.owner('30001')) === undefined;
  }, 'two passes of the repair');
  t.is(warnings.filter((text) => text.includes('the ServiceCIDR kubernetes has other networks')).length, 1);
});

test('records of cluster IPs from before IPAddress objects become such objects without a report', async (t) => {
  const store = sharedStore(t);
  const old = await plane(t, { storage: store });
  const { spec } = await servicesOf(old).create(service('web'));
  const value = spec.clusterIP ?? '';
  await old.client(IPAddress).delete(value);
  const record = Buffer.from(JSON.stringify({ namespace: 'default', name: 'web', uid: 'u' }));
  const key = `!keelson/service-address/${value}`;
  await store.write({ op: 'put', key, value: record, expect: 0 });
  await old.close();
  const made = await plane(t, { storage: store });
  t.is((await made.client(IPAddress).get(value)).spec.parentRef?.name, 'web');
  t.is((await store.get(key)).entry, undefined);
  t.deepEqual((await made.client(Event).namespace('default').list()).items, []);
});
