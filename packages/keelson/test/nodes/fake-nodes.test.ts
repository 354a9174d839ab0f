import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { Lease, Node, Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { FakeNodes } from '../../src/nodes/fake-nodes.ts';
import { exitAfterAnnotation } from '../../src/nodes/fake-pods.ts';

test('fake nodes are ready, renew their leases, and report their pods without running them', async (t) => {
  await using plane = await createControlPlane({ controllers: false });
  const clock = new FakeClock();
  const start = () => new FakeNodes({ client: plane.api, clock, logger: silentLogger, count: 3 });
  let nodes = start();
  await nodes.start();
  t.teardown(() => nodes.stop());
  const leases = plane.client(Lease).namespace('kube-node-lease');
  const renewals = async () => (await leases.list()).items.map(({ spec }) => spec?.renewTime);
  await until(async () => (await renewals()).length === 3);
  const first = await renewals();
  const isReady = ({ status }: Node) =>
    status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  const { items } = await plane.client(Node).list();
  t.deepEqual(
    items.map(({ metadata }) => metadata?.name),
    ['fake-1', 'fake-2', 'fake-3'],
  );
  t.true(items.every(isReady));

  const pods = plane.client(Pod).namespace('default');
  const create = (name: string, nodeName: string | undefined, spec: object = {}, annotations = {}) =>
    pods.create({
      metadata: { name, annotations },
      spec: { ...(nodeName && { nodeName }), containers: [{ name: 'c', image: 'i' }], ...spec },
    } as Pod);
  const phaseOf = async (name: string) => (await pods.get(name)).status?.phase;
  await create('a', 'fake-1');
  await create('b', 'fake-1');
  await create('job', 'fake-2', { restartPolicy: 'Never' }, { [exitAfterAnnotation]: '5' });
  await create('elsewhere', 'real');
  await create('unbound', undefined);
  await until(async () => (await Promise.all(['a', 'b', 'job'].map(phaseOf))).every((phase) => phase === 'Running'));
  const ips = async () => (await Promise.all([pods.get('a'), pods.get('b')])).map(({ status }) => status?.podIP).sort();
  t.deepEqual(await ips(), ['10.128.0.1', '10.128.0.2']);
  clock.advance(5_000);
  await until(async () => (await phaseOf('job')) === 'Succeeded');
  clock.advance(5_000);
  await until(async () => (await renewals()).every((time, index) => time !== first[index]));
  t.deepEqual([await phaseOf('elsewhere'), await phaseOf('unbound')], ['Pending', 'Pending']);

  await nodes.stop();
  nodes = start();
  await nodes.start();
  await create('c', 'fake-1');
  await until(async () => (await phaseOf('c')) === 'Running');
  t.is((await pods.get('c')).status?.podIP, '10.128.0.3', 'addresses of other pods are known after a start');
  await pods.delete('a');
  await until(async () => !(await pods.list()).items.some(({ metadata }) => metadata?.name === 'a'));
  t.deepEqual(
    (await pods.get('b')).status?.containerStatuses?.map(({ ready, restartCount }) => [ready, restartCount]),
    [[true, 0]],
  );
});
