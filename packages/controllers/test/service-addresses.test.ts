import { type FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { Event, Service } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ServiceAddressClaim, type ServiceAddressRecords, ServiceAddressRepair } from '../src/index.ts';
import { startTestPlane } from './support/test-plane.ts';

type Claims = Map<string, ServiceAddressClaim>;

/** Records in memory. Addresses of 10.0.0.0/16 and ports from 30000 are in the ranges. */
function recordsOf(claims: Claims): ServiceAddressRecords {
  let revision = 100;
  return {
    prepare: async () => {},
    list: async (kind) => [...claims.values()].filter((claim) => claim.kind === kind),
    claim: async (kind, value, owner) => {
      if (claims.has(value)) return false;
      revision += 1;
      claims.set(value, { kind, value, revision: String(revision), ...owner });
      return true;
    },
    remove: async ({ value, revision: expected }) => {
      if (claims.get(value)?.revision === expected) claims.delete(value);
    },
    valuesOf: ({ spec }) => [
      ...(spec.clusterIPs ?? []).map((value) => ({ kind: 'address' as const, value })),
      ...(spec.ports ?? []).flatMap(({ nodePort }) =>
        nodePort === undefined ? [] : [{ kind: 'port' as const, value: String(nodePort) }],
      ),
    ],
    inRange: async (kind, value) => (kind === 'address' ? value.startsWith('10.0.') : Number(value) >= 30_000),
  };
}

async function start(t: ExecutionContext) {
  const plane = await startTestPlane({ controllers: false, fakeClock: true });
  const claims: Claims = new Map();
  const clock = plane.clock as FakeClock;
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) };
  const records = recordsOf(claims);
  const repair = new ServiceAddressRepair({
    ...{ client: plane.api, clock, metrics: noMetrics, records, logger: logger as unknown as typeof silentLogger },
  });
  t.teardown(async () => {
    await repair.stop();
    await plane.close();
  });
  const services = plane.client(Service).namespace('default');
  const service = (name: string, address: string, nodePort?: number) =>
    services.create({
      metadata: { name },
      spec: {
        clusterIP: address,
        clusterIPs: [address],
        ...(nodePort === undefined ? {} : { type: 'NodePort' }),
        ports: [{ port: 80, ...(nodePort === undefined ? {} : { nodePort }) }],
      },
    });
  const events = async () => {
    const { items } = await plane.client(Event).namespace('default').list();
    return items.map(({ involvedObject, reason, message }) => `${involvedObject.name} ${reason}: ${message}`).sort();
  };
  return { plane, claims, clock, warnings, records, repair, services, service, events };
}

const claimOf = (kind: 'address' | 'port', value: string, { metadata }: Service): ServiceAddressClaim => {
  const { namespace = '', name = '' } = metadata ?? {};
  return { kind, value, revision: '1', namespace, name };
};

test('values without a record are recorded, and conflicts are reported once as events of the services', async (t) => {
  const { claims, warnings, repair, service, events } = await start(t);
  await service('a', '10.0.0.1', 30_001);
  await service('b', '10.0.0.2', 30_002);
  const owner = await service('c', '10.0.0.2', 30_002);
  await service('d', '10.9.0.1', 80);
  claims.set('10.0.0.2', claimOf('address', '10.0.0.2', owner));
  claims.set('30002', claimOf('port', '30002', owner));
  await repair.repair();
  t.like(claims.get('10.0.0.1'), { kind: 'address', namespace: 'default', name: 'a' });
  t.like(claims.get('30001'), { kind: 'port', name: 'a' });
  t.is(claims.get('10.0.0.2')?.name, 'c');
  t.false(claims.has('10.9.0.1') || claims.has('80'));
  const expected = [
    'a ClusterIPNotAllocated: Cluster IP 10.0.0.1 is not allocated; repairing',
    'a PortNotAllocated: Port 30001 is not allocated; repairing',
    'b ClusterIPAlreadyAllocated: Cluster IP 10.0.0.2 was assigned to multiple services; please recreate service',
    'b PortAlreadyAllocated: Port 30002 was assigned to multiple services; please recreate service',
    'd ClusterIPOutOfRange: Cluster IP 10.9.0.1 is not within the service CIDR; please recreate service',
    'd PortOutOfRange: Port 80 is not within the port range; please recreate service',
  ];
  await until(async () => (await events()).length === expected.length);
  t.deepEqual(await events(), expected);
  t.is(warnings.length, expected.length);
  await repair.repair();
  t.is(warnings.length, expected.length, 'the same problems are not reported again');
});

test('a record of a service without the value is replaced by one of the service that has it', async (t) => {
  const { claims, repair, service } = await start(t);
  const other = await service('other', '10.0.0.5');
  await service('now', '10.0.0.6');
  claims.set('10.0.0.5', claimOf('address', '10.0.0.5', other));
  claims.set('10.0.0.6', claimOf('address', '10.0.0.6', other));
  await repair.repair();
  t.is(claims.get('10.0.0.6')?.name, 'now');
  t.is(claims.get('10.0.0.5')?.revision, '1', 'a correct record is not written');
});

test('a record that another server has replaced is not reported', async (t) => {
  const { claims, warnings, records, repair, service } = await start(t);
  await service('a', '10.0.0.1');
  records.claim = async () => false;
  await repair.repair();
  t.deepEqual([claims.size, warnings], [0, []]);
});

test('a record without a service is released by the second pass, unless it was written between them', async (t) => {
  const { claims, clock, warnings, repair, service } = await start(t);
  const gone = { metadata: { namespace: 'default', name: 'gone' } } as Service;
  claims.set('10.0.0.1', claimOf('address', '10.0.0.1', gone));
  claims.set('30001', claimOf('port', '30001', gone));
  await repair.start();
  t.is(claims.size, 2, 'the service of a new record may not be stored yet');
  claims.set('30001', { ...claimOf('port', '30001', gone), revision: '2' });
  clock.advance(179_000);
  t.is(claims.size, 2);
  clock.advance(1_000);
  await until(() => !claims.has('10.0.0.1'));
  t.deepEqual([...claims.keys()], ['30001']);
  t.deepEqual(warnings, ['an address without a service was released']);
  await service('late', '10.0.0.2');
  clock.advance(180_000);
  await until(() => claims.has('10.0.0.2') && !claims.has('30001'));
  await repair.stop();
  await service('later', '10.0.0.3');
  clock.advance(400_000);
  await repair.stop();
  t.false(claims.has('10.0.0.3'), 'no pass begins after the stop');
});

test('a failed pass is logged and repeated; all pages of services are read', async (t) => {
  const { claims, clock, warnings, records, repair, services, service } = await start(t);
  const { list } = records;
  records.list = async () => {
    throw new Error('no connection');
  };
  await repair.start();
  t.deepEqual(warnings, ['addresses of services could not be checked']);
  records.list = list;
  const creates = Array.from({ length: 501 }, (_, i) => service(`s-${i}`, `10.0.${i >> 8}.${i & 255}`));
  await Promise.all(creates);
  await services.create({ metadata: { name: 'plain' }, spec: { ports: [{ port: 80 }] } });
  clock.advance(180_000);
  await until(() => claims.size === 501);
  t.pass();
});
