import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import test, { type ExecutionContext } from 'ava';
import { Relister } from '../../src/runtime-view/relister.ts';
import { RuntimePods } from '../../src/runtime-view/runtime-pods.ts';
import { settle } from '../support/bench.ts';

const podCount = 200;

/** A host with many pods of one container each, and a relister. */
async function machine(t: ExecutionContext) {
  const clock = new FakeClock();
  const world = new FakeWorld({ clock, images: ['app:1'] });
  const { runtime } = createFakeRuntime(world);
  const labels = (uid: string) => ({
    'io.kubernetes.pod.name': uid,
    'io.kubernetes.pod.namespace': 'default',
    'io.kubernetes.pod.uid': uid,
  });
  const begin = async (uid: string, own = true) => {
    const kept = own ? { labels: labels(uid) } : {};
    const sandboxId = await runtime.runPodSandbox({
      metadata: { name: uid, namespace: 'default', uid, attempt: 0 },
      ...kept,
    });
    const config = { metadata: { name: 'main', attempt: 0 }, image: 'app:1', ...kept };
    const containerId = await runtime.createContainer(sandboxId, config);
    await runtime.startContainer(containerId);
    return { sandboxId, containerId };
  };
  const changed: string[] = [];
  const states = new RuntimePods({
    runtime,
    clock,
    logger: silentLogger,
    callTimeoutMs: 5000,
    onChange: (uid) => changed.push(uid),
  });
  let relisted = 0;
  const onRelisted = () => {
    relisted += 1;
  };
  const relister = new Relister({
    runtime,
    states,
    clock,
    logger: silentLogger,
    periodMs: 1000,
    quietPeriodMs: 60_000,
    onRelisted,
  });
  t.teardown(() => relister.stop());
  const pods = await Promise.all(Array.from({ length: podCount }, (_, i) => begin(`pod-${i}`)));
  relister.start();
  await settle();
  changed.splice(0);
  world.calls.clear();
  const pass = async (ms: number) => {
    clock.advance(ms);
    await settle();
  };
  return { world, begin, states, changed, pods, pass, relisted: () => relisted };
}

const stateOf = (states: RuntimePods, uid: string) => states.get(uid)?.containers[0]?.state;

test('the end of a container is observed at once, by inspecting only its pod', async (t) => {
  const { world, pods, states, changed } = await machine(t);
  world.exit(pods[7]?.containerId ?? '', 3);
  await settle();
  t.is(stateOf(states, 'pod-7'), 'exited');
  t.is(states.get('pod-7')?.containers[0]?.exitCode, 3);
  t.deepEqual(changed, ['pod-7']);
  t.is(world.calls.get('listPodSandboxes'), undefined, 'nothing was searched');
  t.is(world.calls.get('listContainers'), 1);
  t.is(world.calls.get('containerStatus'), 1);
});

test('many events of one pod cause one inspection', async (t) => {
  const { world, pods, pass } = await machine(t);
  const { sandboxId = '' } = pods[0] ?? {};
  for (let i = 0; i < 50; i += 1) {
    world.events.publish({ type: 'containerCreated', containerId: `unknown-${i}`, sandboxId, at: 0 });
  }
  await settle();
  await pass(100);
  t.is(world.calls.get('listContainers'), 1);
});

test('simultaneous events of all pods are handled in the order of the pods, each pod once', async (t) => {
  const { world, pods, changed, states } = await machine(t);
  for (const { containerId } of pods) world.exit(containerId, 0);
  await settle();
  t.deepEqual(
    changed,
    pods.map((_, i) => `pod-${i}`),
  );
  t.true(pods.every((_, i) => stateOf(states, `pod-${i}`) === 'exited'));
  t.is(world.calls.get('listContainers'), podCount);
});

test('events do not repeat an inspection that has already seen their changes', async (t) => {
  const { world, begin, states, pass } = await machine(t);
  const { sandboxId } = await begin('new');
  await settle();
  states.addSandbox('new', sandboxId);
  await states.inspect('new', new AbortController().signal);
  const before = world.calls.get('listContainers');
  await pass(1000);
  t.is(world.calls.get('listContainers'), before);
  t.is(stateOf(states, 'new'), 'running');
});

test('during an action on a pod its events wait for the following inspection, except the end of a container', async (t) => {
  const { world, pods, states, pass } = await machine(t);
  const { sandboxId = '', containerId = '' } = pods[5] ?? {};
  const { runtime } = createFakeRuntime(world);
  let done = () => {};
  const acting = states.whileActing('pod-5', () => new Promise<void>((resolve) => (done = resolve)));
  await runtime.createContainer(sandboxId, { metadata: { name: 'other', attempt: 0 }, image: 'app:1' });
  await pass(500);
  t.is(world.calls.get('listContainers'), undefined);
  world.exit(containerId, 0);
  await settle();
  t.is(states.get('pod-5')?.containers.find(({ id }) => id === containerId)?.state, 'exited');
  done();
  await acting;
});

test('a pod that another process started is found by its events; pods of other programs are ignored', async (t) => {
  const { begin, states, pass, changed } = await machine(t);
  await begin('late');
  await begin('foreign', false);
  await pass(100);
  t.is(stateOf(states, 'late'), 'running');
  t.deepEqual(changed, ['late']);
});

test('a failed inspection of a pod delays no other pod, and is retried', async (t) => {
  const { world, pods, states, pass } = await machine(t);
  world.failNext('listContainers', 'Internal');
  world.exit(pods[1]?.containerId ?? '', 0);
  world.exit(pods[2]?.containerId ?? '', 0);
  await settle();
  t.is(stateOf(states, 'pod-1'), 'running');
  t.is(stateOf(states, 'pod-2'), 'exited');
  await pass(1000);
  t.is(stateOf(states, 'pod-1'), 'exited');
});

test('without an event stream all pods are relisted every second, and rarely when the stream is back', async (t) => {
  const { world, pods, states, pass, relisted } = await machine(t);
  world.breakEvents();
  await settle();
  const before = relisted();
  world.exit(pods[3]?.containerId ?? '', 0);
  await pass(1000);
  t.is(stateOf(states, 'pod-3'), 'exited');
  await pass(1000);
  const back = relisted();
  t.true(back > before);
  await pass(30_000);
  t.is(relisted(), back);
  await pass(30_000);
  t.is(relisted(), back + 1, 'the net under the events');
});

test('a pod that is removed from the runtime is removed from the view with its sandbox', async (t) => {
  const { world, pods, states, changed, pass } = await machine(t);
  const { sandboxId = '' } = pods[4] ?? {};
  const { runtime } = createFakeRuntime(world);
  await runtime.removePodSandbox(sandboxId);
  await pass(100);
  t.is(states.get('pod-4'), undefined);
  t.true(changed.includes('pod-4'));
});
