import { formatTime, statusErrors } from '@keelson/core';
import { type coreV1, Lease, Node, Pod } from '@keelson/kinds';
import test from 'ava';
import { nodeLifecycleController } from '../src/node-lifecycle/node-lifecycle-controller.ts';
import { taintEvictionController } from '../src/node-lifecycle/taint-eviction-controller.ts';
import { recordedWrites, runOverObjects } from './support/run-over-objects.ts';

type Answer = Parameters<typeof recordedWrites>[0];

/** A run of one of the controllers over a node `n` and its pods; `step` reconciles again. */
function situation(node: Node, pods: readonly Pod[], answer?: Answer) {
  const { client, writes, bodies } = recordedWrites(answer);
  const run = {
    ...runOverObjects(
      [
        [Node, [node]],
        [Pod, pods],
        [Lease, []],
      ],
      client,
    ),
    key: 'n',
  };
  return {
    run,
    writes,
    bodies,
    evict: (pod: Pod) =>
      taintEvictionController.reconcile(pod as never, { ...run, key: `default/${pod.metadata?.name}` }),
    observe: (changed: Node = node) => nodeLifecycleController.reconcile(changed as never, run),
  };
}

const tainted = (...taints: coreV1.Taint[]): Node => ({ metadata: { name: 'n', uid: 'n' }, spec: { taints } });
const noExecute: coreV1.Taint = { key: 'a', effect: 'NoExecute' };

function pod(name: string, spec: Partial<Pod['spec']> = {}, more: Partial<Pod> = {}): Pod {
  const conditions = [{ type: 'Ready', status: 'True' }];
  return {
    metadata: { name, namespace: 'default', uid: name },
    spec: { containers: [], nodeName: 'n', ...spec },
    status: { phase: 'Running', conditions },
    ...more,
  };
}

const tolerating = (tolerationSeconds?: number) => ({
  tolerations: [{ key: 'a', operator: 'Exists', ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }) }],
});

test('a pod that does not tolerate a taint is marked and deleted, also when it is gone already', async (t) => {
  const { evict, writes, bodies, run } = situation(tainted(noExecute), []);
  t.is(await evict(pod('p')), undefined);
  t.deepEqual(writes, ['patch status of Pod p', 'delete Pod p']);
  t.like((bodies[0] as Pod).status?.conditions?.[0], { type: 'DisruptionTarget', reason: 'DeletionByTaintManager' });
  t.deepEqual(run.events, ['Normal TaintManagerEviction: Marking for deletion Pod default/p']);
  const gone = situation(tainted(noExecute), [], () => {
    throw statusErrors.notFound({ group: '', resource: 'pods' } as never, 'p');
  });
  await t.notThrowsAsync(async () => gone.evict(pod('p')));
  const failing = situation(tainted(noExecute), [], () => {
    throw new Error('no');
  });
  await t.throwsAsync(async () => failing.evict(pod('p')), { message: 'no' });
});

test('a pod is evicted when its toleration ends, counted from the first run that has seen the taint', async (t) => {
  const { evict, writes, run } = situation(tainted(noExecute), []);
  t.deepEqual(await evict(pod('p', tolerating(60))), { againAfterMs: 60_000 });
  run.clock.advance(20_000);
  t.deepEqual(await evict(pod('p', tolerating(60))), { againAfterMs: 40_000 });
  t.deepEqual(writes, []);
  run.clock.advance(40_000);
  t.is(await evict(pod('p', tolerating(60))), undefined);
  t.deepEqual(writes, ['patch status of Pod p', 'delete Pod p']);
});

test('pods without a node, pods in deletion and pods that tolerate the taint stay; a planned eviction is cancelled', async (t) => {
  const { evict, writes, run } = situation(tainted(noExecute), []);
  await evict(pod('unassigned', { nodeName: '' }));
  await evict(pod('leaving', {}, { metadata: { name: 'leaving', deletionTimestamp: formatTime(new Date(0)) } }));
  await evict(pod('other', { nodeName: 'unknown' }));
  await evict(pod('tolerating', tolerating()));
  t.deepEqual([writes, run.events], [[], []]);
  await evict(pod('p', tolerating(60)));
  await evict(pod('p', tolerating()));
  t.deepEqual(run.events, ['Normal TaintManagerEviction: Cancelling deletion of Pod default/p']);
  await evict(pod('p', tolerating()));
  t.is(run.events.length, 1);
});

const reporting = (ready: string, heartbeat = 0, spec: Node['spec'] = {}): Node => ({
  metadata: { name: 'n', uid: 'n' },
  spec,
  status: {
    conditions: ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
      ...{ type, status: type === 'Ready' ? ready : 'False', lastHeartbeatTime: formatTime(new Date(heartbeat)) },
    })),
  },
});

test('a node is examined again when its next heartbeat is due, and every five seconds while it is not ready', async (t) => {
  const { observe, run, writes } = situation(reporting('True'), []);
  t.deepEqual(await observe(), { againAfterMs: 50_000 });
  run.clock.advance(10_000);
  t.deepEqual(await observe(), { againAfterMs: 40_000 });
  t.deepEqual(await observe(reporting('True', 1000)), { againAfterMs: 50_000 }, 'a new heartbeat');
  t.deepEqual(run.events, ['Normal RegisteredNode: Node n event: Registered Node n in Controller']);
  t.deepEqual(writes, []);
  run.clock.advance(50_000);
  t.is(await observe(reporting('True', 1000)), undefined);
  t.deepEqual(writes, ['update status of Node n']);
  t.deepEqual(await observe(reporting('False', 2000)), { againAfterMs: 5_000 });
});

test('a node that has never reported is unreachable after a minute', async (t) => {
  const { observe, run, writes, bodies } = situation({ metadata: { name: 'n', uid: 'n' } }, []);
  t.deepEqual(await observe(), { againAfterMs: 5_000 });
  run.clock.advance(59_999);
  await observe();
  t.deepEqual(writes, []);
  run.clock.advance(1);
  await observe();
  t.deepEqual(writes, ['update status of Node n']);
  const reasons = (bodies[0] as Node).status?.conditions?.map(
    ({ type, status, reason }) => `${type} ${status} ${reason}`,
  );
  t.is(reasons?.length, 4);
  t.is(reasons?.[0], 'Ready Unknown NodeStatusNeverUpdated');
});

test('pods are marked as not ready when their node stops reporting, but not while it reports that it is not ready', async (t) => {
  const pods = [pod('a'), pod('b', {}, { status: { phase: 'Running' } }), pod('c', { nodeName: 'other' })];
  const { observe, writes, run } = situation(reporting('True'), pods);
  const marked = async (node: Node) => {
    writes.length = 0;
    await observe(node);
    return writes.filter((write) => write.includes('Pod')).join();
  };
  t.is(await marked(reporting('False')), '', 'the node was not seen ready, and reports the state of its pods');
  t.is(await marked(reporting('True')), '');
  t.is(await marked(reporting('False')), '');
  t.false(run.events.some((text) => text.includes('NodeNotReady')));
  t.is(await marked(reporting('True')), '');
  t.is(await marked(reporting('Unknown')), 'patch status of Pod a');
  t.is(run.events.filter((text) => text.includes('NodeNotReady: Node n status is now')).length, 1);
});

test('a conflict with another client leads to another run at once, other failures are thrown', async (t) => {
  const failing = (failure: Error) =>
    situation(reporting('True', 0, { unschedulable: true }), [], () => {
      throw failure;
    }).observe();
  const conflict = statusErrors.conflict({ group: '', resource: 'nodes' } as never, 'n', 'changed');
  t.deepEqual(await failing(conflict), { againAfterMs: 0 });
  await t.throwsAsync(async () => failing(new Error('no')), { message: 'no' });
});
