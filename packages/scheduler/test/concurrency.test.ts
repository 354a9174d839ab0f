import { Informer } from '@keelson/client';
import { type KindDefinition, type KubeObject, statusErrors } from '@keelson/core';
import { Pod } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { nodeFilter, nodeScore } from '../src/index.ts';
import { interceptBindings } from './support/intercepted-client.ts';
import { randomOf } from './support/random-cluster.ts';
import { startTestCluster, type TestCluster } from './support/test-cluster.ts';

const large = { requests: { cpu: '3' } };

/** A promise and the function that resolves it. */
function latch() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/** Pods on each node, by the server. */
async function booked(cluster: TestCluster): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { spec } of (await cluster.pods.list()).items)
    if (spec.nodeName) counts.set(spec.nodeName, (counts.get(spec.nodeName) ?? 0) + 1);
  return counts;
}

test('resources of a node are not allocated twice while a binding is being written', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  const { open, opened } = latch();
  const client = interceptBindings(cluster.client, async (_pod, _node, bind) => {
    await opened;
    return bind();
  });
  await cluster.startScheduler({ client });
  await cluster.addPod('first', large);
  await cluster.addPod('second', large);
  t.regex((await cluster.rejected('second')).message ?? '', /1 Insufficient cpu/);
  t.is((await cluster.pods.get('first')).spec.nodeName, undefined);
  open();
  t.is(await cluster.assigned('first'), 'n1');
});

test('resources assumed for a pod are released when another scheduler has assigned it in the meantime', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  await cluster.addNode('n2', { spec: { unschedulable: true } });
  const client = interceptBindings(cluster.client, async (pod, _node, bind) => {
    if (pod === 'first')
      await cluster.pods.createSubresource('first', 'binding', {
        metadata: { name: 'first' },
        target: { name: 'n2' },
      } as KubeObject);
    return bind();
  });
  await cluster.startScheduler({ client });
  await cluster.addPod('first', large);
  t.is(await cluster.assigned('first'), 'n2');
  await cluster.addPod('second', large);
  t.is(await cluster.assigned('second'), 'n1');
  const scheduled = (await cluster.pods.get('first')).status?.conditions?.find(({ type }) => type === 'PodScheduled');
  t.is(scheduled?.status, 'True');
});

test('a binding that fails is retried after a back-off, with a condition and an event', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  let failures = 0;
  const client = interceptBindings(cluster.client, (_pod, _node, bind) => {
    failures += 1;
    return failures === 1 ? Promise.reject(statusErrors.internal('no leader')) : bind();
  });
  await cluster.startScheduler({ client });
  await cluster.addPod('first', large);
  const { reason, message = '' } = await cluster.rejected('first');
  t.is(reason, 'SchedulerError');
  t.regex(message, /no leader/);
  t.is(await cluster.event('first', 'FailedScheduling'), message);
  cluster.clock.advance(999);
  t.is(failures, 1);
  cluster.clock.advance(1);
  t.is(await cluster.assigned('first'), 'n1');
});

test('a pod that is deleted and created again while its binding is written is scheduled again', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  let replaced = false;
  const client = interceptBindings(cluster.client, async (_pod, _node, bind) => {
    if (!replaced) {
      replaced = true;
      await cluster.pods.delete('first');
      await cluster.addPod('first', large);
    }
    return bind();
  });
  await cluster.startScheduler({ client });
  await cluster.addPod('first', large);
  t.is(await cluster.assigned('first'), 'n1');
  await cluster.addPod('second', large);
  t.regex((await cluster.rejected('second')).message ?? '', /1 Insufficient cpu/);
});

test('a pod that is bound to a node that was deleted counts when the node is created again', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  const client = interceptBindings(cluster.client, async (pod, _node, bind) => {
    if (pod === 'first') await cluster.nodes.delete('n1');
    return bind();
  });
  await cluster.startScheduler({ client });
  await cluster.addPod('first', large);
  t.is(await cluster.assigned('first'), 'n1');
  await cluster.addPod('second', large);
  t.is((await cluster.rejected('second')).message, 'no nodes available to schedule pods');
  await cluster.addNode('n1');
  cluster.clock.advance(1_000);
  const { message = '' } = await cluster.rejected('second', (found) => found.message?.startsWith('0/1') === true);
  t.regex(message, /1 Insufficient cpu/);
});

test('finished and deleted pods release the resources of their node', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  await cluster.startScheduler();
  await cluster.addPod('a', large);
  await cluster.assigned('a');
  await cluster.addPod('b', large);
  await cluster.rejected('b');
  await cluster.pods.patchSubresource('a', 'status', 'merge', { status: { phase: 'Succeeded' } });
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('b'), 'n1');
  await cluster.addPod('c', large);
  await cluster.rejected('c');
  await cluster.pods.delete('b', { gracePeriodSeconds: 0 });
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('c'), 'n1');
});

test('a binding without a response is assumed when it was executed, and is no failure', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  const client = interceptBindings(cluster.client, async (_pod, _node, bind) => {
    await bind();
    throw statusErrors.internal('done, but the answer is lost');
  });
  await cluster.startScheduler({ client });
  await cluster.addPod('first', large);
  t.is(await cluster.assigned('first'), 'n1');
  t.regex(await cluster.event('first', 'Scheduled'), /Successfully assigned default\/first to n1/);
  await cluster.addPod('second', large);
  t.regex((await cluster.rejected('second')).message ?? '', /1 Insufficient cpu/);
});

test('with lost responses, failures and restarts no pod is bound twice and no node is overcommitted', async (t) => {
  const seed = Number(process.env['KEELSON_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  const random = randomOf(seed);
  const cluster = await startTestCluster(t);
  for (const name of ['n1', 'n2', 'n3', 'n4']) await cluster.addNode(name, { allocatable: { pods: '8' } });
  const bindings = new Map<string, number>();
  const client = interceptBindings(cluster.client, async (pod, _node, bind) => {
    if (random() < 0.2) throw statusErrors.internal('not done');
    await bind();
    bindings.set(pod, (bindings.get(pod) ?? 0) + 1);
    if (random() < 0.2) throw statusErrors.internal('done, but the answer is lost');
  });
  for (let at = 0; at < 40; at += 1) await cluster.addPod(`p${at}`);
  for (let restart = 0; restart < 4; restart += 1) {
    const scheduler = await cluster.startScheduler({ client, random });
    await until(async () => {
      cluster.clock.advance(1_000);
      const total = [...(await booked(cluster)).values()].reduce((sum, count) => sum + count, 0);
      return total >= Math.min(32, (restart + 1) * 8);
    });
    await scheduler.stop();
  }
  t.deepEqual([...(await booked(cluster)).values()], [8, 8, 8, 8], `KEELSON_TEST_SEED=${seed}`);
  t.true(
    [...bindings.values()].every((count) => count === 1),
    `KEELSON_TEST_SEED=${seed}`,
  );
});

test('configured filters, scores, weights and order of pods apply', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1', { labels: { licence: 'yes', rank: '1' } });
  await cluster.addNode('n2', { labels: { licence: 'yes', rank: '9' } });
  await cluster.addNode('n3', { labels: { rank: '99' } });
  for (const name of ['a', 'b', 'c']) await cluster.addPod(name, { requests: { cpu: '1' } });
  const order: string[] = [];
  const client = interceptBindings(cluster.client, (pod, _node, bind) => {
    order.push(pod);
    return bind();
  });
  await cluster.startScheduler({
    client,
    filters: [nodeFilter('Licence', (_pod, node) => (node.labels['licence'] ? undefined : 'node(s) had no licence'))],
    scores: [nodeScore('Rank', 1, (pod, node) => (pod.object ? Number(node.labels['rank']) : 0))],
    weights: { NodeResourcesFit: 0, NodeResourcesBalancedAllocation: 0 },
    order: (a, b) => (a.pod.name < b.pod.name ? 1 : -1),
  });
  for (const name of ['a', 'b', 'c']) t.is(await cluster.assigned(name), 'n2');
  t.deepEqual(order, ['c', 'b', 'a']);
  await cluster.addPod('d', { requests: { cpu: '8' } });
  t.regex((await cluster.rejected('d')).message ?? '', /^0\/3 nodes are available: 3 Insufficient cpu\./);
});

test('a filter that throws is reported for its pod only, and the pod is retried', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  let isBroken = true;
  await cluster.startScheduler({
    filters: [
      nodeFilter('Broken', (pod) => {
        if (pod.name === 'bad' && isBroken) throw new Error('broken filter');
        return undefined;
      }),
    ],
  });
  await cluster.addPod('bad', large);
  t.like(await cluster.rejected('bad'), { reason: 'SchedulerError', message: 'broken filter' });
  isBroken = false;
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('bad'), 'n1');
});

test('discovery is retried until the server responds', async (t) => {
  const cluster = await startTestCluster(t);
  await cluster.addNode('n1');
  await cluster.addPod('first', large);
  let attempts = 0;
  const client = {
    ...cluster.client,
    discover: () => {
      attempts += 1;
      return attempts < 3 ? Promise.reject(new Error('no connection')) : cluster.client.discover();
    },
  };
  const starting = cluster.startScheduler({ client });
  await until(async () => {
    cluster.clock.advance(1_000);
    return attempts === 3;
  });
  await starting;
  t.is(await cluster.assigned('first'), 'n1');
});

test('the scheduler can use shared informers', async (t) => {
  const cluster = await startTestCluster(t);
  const { clock, logger } = cluster.options;
  const informer = new Informer({ client: cluster.client.resource(Pod), keep: (pod: Pod) => pod, clock, logger });
  t.teardown(() => informer.stop());
  await cluster.addNode('n1');
  await cluster.addPod('before', large);
  const informerOf = (kind: KindDefinition) => (kind.kind === 'Pod' ? informer : undefined);
  const starting = cluster.startScheduler({ informerOf: informerOf as never });
  await informer.start();
  await starting;
  t.is(await cluster.assigned('before'), 'n1');
  await cluster.addPod('after', large);
  t.regex((await cluster.rejected('after')).message ?? '', /1 Insufficient cpu/);
  await cluster.pods.delete('before', { gracePeriodSeconds: 0 });
  cluster.clock.advance(1_000);
  t.is(await cluster.assigned('after'), 'n1');
});
