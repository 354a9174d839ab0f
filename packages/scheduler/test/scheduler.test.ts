import { PersistentVolume, PersistentVolumeClaim, StorageClass } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { startTestCluster } from './support/test-cluster.ts';

test('pods are bound to nodes with free resources, with an event', async (t) => {
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

test('pods of other schedulers, with a node or with scheduling gates are ignored', async (t) => {
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

test('the generation of a pod rises with its specification, not with its assignment to a node', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.startScheduler();
  await cluster.addPod('p');
  const waiting = await cluster.rejected('p');
  t.is(waiting.observedGeneration, 1);
  await cluster.addNode('n1');
  cluster.clock.advance(1_000);
  await cluster.assigned('p');
  t.is((await cluster.pods.get('p')).metadata?.generation, 1);
  const changed = await cluster.pods.patch('p', 'merge', { spec: { activeDeadlineSeconds: 60 } });
  t.is(changed.metadata?.generation, 2);
  t.like((await cluster.pods.delete('p', { gracePeriodSeconds: 30 })).metadata, { generation: 3 });
});

test('pods wait while there are no nodes', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.startScheduler();
  await cluster.addPod('waits');
  t.is((await cluster.rejected('waits')).message, 'no nodes available to schedule pods');
  await cluster.addNode('n1');
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('waits'), 'n1');
});

test('a pod is bound after its claims are bound on the selected node; a failure to bind a claim is retried', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1', { allocatable: { cpu: '1' } });
  const { client } = cluster;
  await client.resource(StorageClass).create({
    metadata: { name: 'disks' },
    provisioner: 'example.com/disks',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  const claims = client.resource(PersistentVolumeClaim).namespace('default');
  const resources = { requests: { storage: '1Gi' } };
  const accessModes = ['ReadWriteOnce'];
  await claims.create({ metadata: { name: 'data' }, spec: { storageClassName: 'disks', accessModes, resources } });
  await cluster.startScheduler();
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }];
  await cluster.addPod('user', { requests: { cpu: '600m' }, spec: { volumes } });
  const selected = 'volume.kubernetes.io/selected-node';
  const isSelected = async () => (await claims.get('data')).metadata?.annotations?.[selected] === 'n1';
  await until(isSelected, 'a node is selected');
  await cluster.addPod('other', { requests: { cpu: '600m' } });
  t.regex((await cluster.rejected('other')).message ?? '', /Insufficient cpu/, 'the resources are kept meanwhile');

  await claims.patch('data', 'merge', { metadata: { annotations: { [selected]: null } } });
  const why =
    /^running PreBind plugin "VolumeBinding": binding volumes: no volume for persistentvolumeclaim default\/data/;
  t.regex(await cluster.event('user', 'FailedScheduling'), why);
  await cluster.pods.delete('other');
  await until(async () => {
    cluster.clock.advance(1_000);
    return isSelected();
  }, 'a node is selected again');
  t.is((await cluster.pods.get('user')).spec.nodeName, undefined);
  await client.resource(PersistentVolume).create({
    metadata: { name: 'pv' },
    spec: { capacity: { storage: '1Gi' }, accessModes, storageClassName: 'disks', hostPath: { path: '/tmp/pv' } },
  });
  await claims.patch('data', 'merge', { spec: { volumeName: 'pv' } });
  await claims.patchSubresource('data', 'status', 'merge', { status: { phase: 'Bound' } });
  t.is(await cluster.assigned('user'), 'n1');
});
