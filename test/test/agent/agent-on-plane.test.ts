import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type EventRecorder, noEvents } from '@keelson/agent';
import { isStatusError } from '@keelson/core';
import { ConfigMap, Lease, Node, Pod } from '@keelson/kinds';
import { behaviours, createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type AgentNode, scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

let plane: TestPlane;
let nodes = 0;

test.before(async () => {
  plane = await startTestPlane();
});

test.after.always(() => plane.close());

interface Setting {
  readonly node: AgentNode;
  readonly name: string;
  readonly world: FakeWorld;
}

async function setting(
  t: ExecutionContext,
  words: readonly string[] = [],
  events: EventRecorder = noEvents,
): Promise<Setting> {
  nodes += 1;
  const name = `node-${nodes}`;
  const world = new FakeWorld();
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const node = await startAgentNode({ name, engine: createFakeRuntime(world), api: plane.api, words, dir, events });
  t.teardown(() => node.stop());
  return { node, name, world };
}

const pods = () => plane.client(Pod).namespace('default');

function boundPod(nodeName: string, name: string, spec: Partial<Pod['spec']> = {}): Pod {
  return {
    metadata: { name, namespace: 'default' },
    spec: { nodeName, terminationGracePeriodSeconds: 1, containers: [{ name: 'main', image: 'app:1' }], ...spec },
  };
}

const running = (name: string) =>
  eventually(async () => ((await pods().get(name)).status?.phase === 'Running' ? pods().get(name) : undefined));

test('the node registers with labels, taints and provider id, becomes Ready, and sends heartbeats', async (t) => {
  const { name } = await setting(t, [
    '--node-labels=zone=a',
    '--register-with-taints=own=x:NoSchedule',
    '--provider-id=test://1',
  ]);
  const ready = await eventually(async () => {
    const node = await plane.client(Node).get(name);
    return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True' ? node : undefined;
  });
  t.is(ready.metadata?.labels?.['zone'], 'a');
  t.is(ready.metadata?.labels?.['kubernetes.io/hostname'], name);
  t.deepEqual(ready.spec?.taints, [{ key: 'own', value: 'x', effect: 'NoSchedule' }]);
  t.is(ready.spec?.providerID, 'test://1');
  t.is(ready.status?.conditions?.at(-1)?.type, 'Ready');
  t.deepEqual(ready.status?.addresses, [
    { type: 'InternalIP', address: '192.0.2.1' },
    { type: 'Hostname', address: name },
  ]);
  t.is(ready.status?.capacity?.['pods'], '110');
  t.regex(ready.status?.nodeInfo?.containerRuntimeVersion ?? '', /^fake:\/\//);
  const beat = (node: Node) => node.status?.conditions?.find(({ type }) => type === 'Ready');
  const later = await eventually(async () => {
    const node = await plane.client(Node).get(name);
    return beat(node)?.lastHeartbeatTime !== beat(ready)?.lastHeartbeatTime ? node : undefined;
  });
  t.is(beat(later)?.lastTransitionTime, beat(ready)?.lastTransitionTime);
  const lease = await eventually(() => plane.client(Lease).namespace('kube-node-lease').get(name));
  t.is(lease.spec?.holderIdentity, name);
});

test('cordoning and uncordoning a node are recorded as events of the node', async (t) => {
  const reasons: string[] = [];
  const { name } = await setting(t, [], { record: ({ kind }, _type, reason) => reasons.push(`${kind} ${reason}`) });
  await eventually(() => plane.client(Node).get(name));
  for (const [unschedulable, expected] of [
    [true, 'Node NodeNotSchedulable'],
    [false, 'Node NodeSchedulable'],
  ] as const) {
    await plane.client(Node).patch(name, 'merge', { spec: { unschedulable } });
    await eventually(async () => reasons.includes(expected));
  }
  t.deepEqual(
    reasons.filter((reason) => reason.endsWith('Schedulable')),
    ['Node NodeNotSchedulable', 'Node NodeSchedulable'],
  );
});

test('a runtime that is not ready makes the node NotReady until it recovers', async (t) => {
  const { name, world } = await setting(t);
  const status = async () =>
    (await plane.client(Node).get(name)).status?.conditions?.find(({ type }) => type === 'Ready');
  await eventually(async () => (await status())?.status === 'True');
  world.networkReady = false;
  await eventually(async () => (await status())?.status === 'False');
  t.regex((await status())?.message ?? '', /network not ready/);
  world.networkReady = true;
  await eventually(async () => (await status())?.status === 'True');
});

test('a bound pod runs, and its status has its addresses, start time and readiness', async (t) => {
  const { name } = await setting(t);
  await pods().create(boundPod(name, 'bound'));
  const pod = await running('bound');
  t.is(pod.status?.hostIP, '192.0.2.1');
  t.regex(pod.status?.podIP ?? '', /^10\./);
  t.deepEqual(pod.status?.podIPs, [{ ip: pod.status?.podIP ?? '' }]);
  t.truthy(pod.status?.startTime);
  t.is(pod.status?.containerStatuses?.[0]?.ready, true);
  t.is(pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'True');
});

test('an ephemeral container is started once in a running pod, and not restarted when it ends', async (t) => {
  const { name, world } = await setting(t, ['--sync-frequency=50ms']);
  world.script = ({ metadata }) => (metadata.name === 'debug' ? { exitAfterMs: 100, exitCode: 3 } : {});
  await pods().create(boundPod(name, 'debugged'));
  const before = await running('debugged');
  const ephemeralContainers = [{ name: 'debug', image: 'tools:1', command: ['debug'], targetContainerName: 'main' }];
  await pods().patchSubresource('debugged', 'ephemeralcontainers', 'strategic', { spec: { ephemeralContainers } });
  const ended = await eventually(async () => {
    const pod = await pods().get('debugged');
    return pod.status?.ephemeralContainerStatuses?.[0]?.state?.terminated !== undefined && pod;
  });
  t.like(ended.status?.ephemeralContainerStatuses?.[0], {
    name: 'debug',
    restartCount: 0,
    state: { terminated: { exitCode: 3 } },
  });
  t.is(ended.status?.phase, 'Running');
  t.is(ended.status?.containerStatuses?.[0]?.containerID, before.status?.containerStatuses?.[0]?.containerID);
  // Another pod starts meanwhile, which takes many periods of the sync loop.
  await pods().create(boundPod(name, 'other'));
  await running('other');
  t.is((await pods().get('debugged')).status?.ephemeralContainerStatuses?.[0]?.restartCount, 0);
});

test('an ephemeral container that the node does not admit is not started, and the pod continues to run', async (t) => {
  const { name } = await setting(t, ['--allow-privileged=false']);
  await pods().create(boundPod(name, 'guarded'));
  await running('guarded');
  const ephemeralContainers = [{ name: 'debug', image: 'tools:1', securityContext: { privileged: true } }];
  await pods().patchSubresource('guarded', 'ephemeralcontainers', 'strategic', { spec: { ephemeralContainers } });
  const waiting = await eventually(async () => {
    const pod = await pods().get('guarded');
    return pod.status?.ephemeralContainerStatuses?.[0]?.state?.waiting?.message !== undefined && pod;
  });
  t.like(waiting.status?.ephemeralContainerStatuses?.[0]?.state?.waiting, {
    reason: 'Blocked',
    message: 'pod may not have privileged containers',
  });
  t.is(waiting.status?.phase, 'Running');
});

test('an unchanged status is not written again', async (t) => {
  const { name } = await setting(t, ['--sync-frequency=50ms']);
  await pods().create(boundPod(name, 'quiet'));
  const pod = await running('quiet');
  // Another pod is created and deleted meanwhile, which takes many periods of the sync loop.
  await pods().create(boundPod(name, 'loud'));
  await running('loud');
  const { resourceVersion } = (await pods().get('quiet')).metadata ?? {};
  await pods().delete('loud');
  await eventually(() =>
    pods()
      .get('loud')
      .then(
        () => false,
        () => true,
      ),
  );
  const after = await pods().get('quiet');
  t.is(after.metadata?.resourceVersion, resourceVersion);
  t.is(after.metadata?.uid, pod.metadata?.uid);
});

test('a deleted pod is removed from the API only after all its resources on the node are removed', async (t) => {
  const { name, world, node } = await setting(t);
  world.script = () => ({ stopAfterMs: 300 });
  const { metadata } = await pods().create(boundPod(name, 'leaving', { terminationGracePeriodSeconds: 5 }));
  await running('leaving');
  await pods().delete('leaving');
  t.truthy((await pods().get('leaving')).metadata?.deletionTimestamp);
  await eventually(async () => {
    try {
      await pods().get('leaving');
      return false;
    } catch (error) {
      return isStatusError(error, 'NotFound');
    }
  });
  t.is(world.sandboxes.size, 0);
  t.is(world.containers.size, 0);
  await t.throwsAsync(readFile(join(node.dir, 'agent/pods', metadata?.uid ?? '', 'etc-hosts')), { code: 'ENOENT' });
});

test('a pod that is force-deleted and recreated with the same name is another pod', async (t) => {
  const { name, world } = await setting(t);
  await pods().create(boundPod(name, 'again'));
  const first = await running('again');
  await pods().delete('again', { gracePeriodSeconds: 0 });
  await pods().create(boundPod(name, 'again'));
  const second = await running('again');
  t.not(second.metadata?.uid, first.metadata?.uid);
  await eventually(() => world.sandboxes.size === 1);
});

test('a job that ends is Succeeded, with exit code and times', async (t) => {
  const { name, world } = await setting(t);
  world.script = () => behaviours.exitAfter(50, 0);
  await pods().create(boundPod(name, 'job', { restartPolicy: 'Never' }));
  const done = await eventually(async () => {
    const pod = await pods().get('job');
    return pod.status?.phase === 'Succeeded' ? pod : undefined;
  });
  const ended = done.status?.containerStatuses?.[0]?.state?.terminated;
  t.is(ended?.exitCode, 0);
  t.is(ended?.reason, 'Completed');
  t.truthy(ended?.finishedAt);
  t.is(done.status?.conditions?.find(({ type }) => type === 'Ready')?.reason, 'PodCompleted');
});

test('a status that another client wrote is corrected', async (t) => {
  const { name } = await setting(t);
  await pods().create(boundPod(name, 'forged'));
  await running('forged');
  await pods().patchSubresource('forged', 'status', 'merge', { status: { phase: 'Pending', podIP: '203.0.113.9' } });
  await eventually(async () => (await pods().get('forged')).status?.phase === 'Running');
  t.not((await pods().get('forged')).status?.podIP, '203.0.113.9');
});

test('a pod waits for its config map, runs once it is created, and receives its changes', async (t) => {
  const { name, node } = await setting(t, ['--sync-frequency=500ms']);
  const maps = plane.client(ConfigMap).namespace('default');
  const pod = await pods().create(
    boundPod(name, 'configured', {
      containers: [
        {
          name: 'main',
          image: 'app:1',
          env: [{ name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } }],
          volumeMounts: [{ name: 'settings', mountPath: '/settings' }],
        },
      ],
      volumes: [{ name: 'settings', configMap: { name: 'settings', optional: true } }],
    }),
  );
  await eventually(async () => {
    const waiting = (await pods().get('configured')).status?.containerStatuses?.[0]?.state?.waiting;
    return waiting?.reason === 'CreateContainerConfigError';
  });
  await maps.create({ metadata: { name: 'settings' }, data: { colour: 'blue' } });
  await eventually(async () => (await pods().get('configured')).status?.phase === 'Running');
  const file = join(node.dir, 'agent/pods', pod.metadata?.uid ?? '', 'volumes/kubernetes.io~configmap/settings/colour');
  // The volume is optional: a container that starts while the map is created may have its key in the environment first.
  await eventually(async () => (await readFile(file, 'utf8')) === 'blue');
  await maps.patch('settings', 'merge', { data: { colour: 'green' } });
  await eventually(async () => (await readFile(file, 'utf8')) === 'green');
  t.pass();
});
