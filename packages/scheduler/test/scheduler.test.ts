import test from 'ava';
import { startTestCluster } from './support/test-cluster.ts';

test('pods are assigned through bindings to nodes with free resources, with an event', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1', { allocatable: { cpu: '1' } });
  await cluster.addPod('early', { requests: { cpu: '600m' } });
  await cluster.startScheduler();
  t.is(await cluster.assigned('early'), 'n1');
  t.is(await cluster.event('early', 'Scheduled'), 'Successfully assigned default/early to n1');
  await cluster.addPod('large', { requests: { cpu: '600m' } });
  const { reason, message = '' } = await cluster.rejected('large');
  t.is(reason, 'Unschedulable');
  t.regex(message, /^0\/1 nodes are available: 1 Insufficient cpu\./);
  t.is(await cluster.event('large', 'FailedScheduling'), message);
  await cluster.addNode('n2');
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('large'), 'n2');
});

test('pods of other schedulers, with a node or with scheduling gates are left alone', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  await cluster.addPod('other', { spec: { schedulerName: 'mine' } });
  await cluster.addPod('gated', { spec: { schedulingGates: [{ name: 'example.com/wait' }] } });
  await cluster.startScheduler();
  await cluster.addPod('last');
  await cluster.assigned('last');
  t.is((await cluster.pods.get('other')).spec.nodeName, undefined);
  const gated = await cluster.pods.get('gated');
  t.is(gated.spec.nodeName, undefined);
  t.like(gated.status?.conditions?.[0], { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' });
  await cluster.pods.patch('gated', 'merge', { spec: { schedulingGates: null } });
  t.is(await cluster.assigned('gated'), 'n1');
});

test('pods wait without nodes', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.startScheduler();
  await cluster.addPod('waits');
  t.is((await cluster.rejected('waits')).message, 'no nodes available to schedule pods');
  await cluster.addNode('n1');
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('waits'), 'n1');
});
