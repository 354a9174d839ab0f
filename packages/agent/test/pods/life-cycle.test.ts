import { access, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { behaviours } from '@keelson/runtime-fake';
import test from 'ava';
import { startBench, testPod } from '../support/bench.ts';

test('a pod runs, has a status with addresses and times, and is removed with its files when its source removes it', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const status = bench.status(pod);
  t.is(status.hostIP, '192.0.2.1');
  t.is(status.podIP, '10.0.0.1');
  t.truthy(status.startTime);
  t.is(status.qosClass, 'BestEffort');
  t.is(status.containerStatuses?.[0]?.ready, true);
  t.regex(status.containerStatuses?.[0]?.containerID ?? '', /^fake:\/\//);
  t.deepEqual(
    status.conditions?.map(({ type, status: is }) => `${type}=${is}`),
    ['Initialized=True', 'Ready=True', 'ContainersReady=True', 'PodScheduled=True'],
  );
  const hosts = await readFile(join(bench.rootDir, 'agent/pods', pod.metadata?.uid ?? '', 'etc-hosts'), 'utf8');
  t.regex(hosts, /10\.0\.0\.1\tweb\n/);
  bench.pods.remove(pod);
  await bench.until(() => bench.world.sandboxes.size === 0);
  await bench.until(() => bench.containers().length === 0);
  await t.throwsAsync(access(join(bench.rootDir, 'agent/pods', pod.metadata?.uid ?? '')), { code: 'ENOENT' });
  t.deepEqual(
    bench.events.map(({ reason }) => reason),
    ['Pulling', 'Pulled', 'Created', 'Started', 'Killing'],
  );
});

test('container IDs begin with the name that the runtime reports, not with that of the adapter', async (t) => {
  const bench = await startBench(t, {
    version: async () => ({ runtimeName: 'containerd', runtimeVersion: 'v1.6.20', runtimeApiVersion: 'v1' }),
  });
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const [container] = bench.containers('main');
  t.is(bench.status(pod).containerStatuses?.[0]?.containerID, `containerd://${container?.id}`);
});

test('the files of a pod whose UID is no valid directory name are kept while it exists; those of unknown pods are removed', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('odd');
  pod.metadata = { ...pod.metadata, uid: 'odd/uid' };
  const [its, nobodys] = [join(bench.rootDir, 'agent/pods/odd_uid'), join(bench.rootDir, 'agent/pods/nobody')];
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await mkdir(nobodys, { recursive: true });
  await bench.pass(5000);
  await t.notThrowsAsync(access(its));
  await t.throwsAsync(access(nobodys), { code: 'ENOENT' });
  bench.pods.remove(pod);
  await bench.pass(5000);
  await t.throwsAsync(access(its), { code: 'ENOENT' });
});

test('a crashing container is restarted after 10 s, 20 s, 40 s; the pod stays Running and shows CrashLoopBackOff', async (t) => {
  const starts: number[] = [];
  const bench = await startBench(t, {
    script: () => {
      starts.push(bench.clock.monotonic());
      return behaviours.crashLoop(0, 3);
    },
  });
  const pod = testPod('crash');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff');
  const waiting = bench.status(pod);
  t.is(waiting.phase, 'Running');
  t.is(waiting.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 3);
  await bench.until(() => starts.length === 5);
  const pauses = starts.slice(1).map((at, i) => Math.round((at - (starts[i] ?? 0)) / 1000));
  t.true((pauses[0] ?? 99) <= 2, `first restart comes at once: ${pauses}`);
  // Fake time advances while the worker works, so that a back-off may be a little longer, never shorter.
  for (const [i, seconds] of [10, 20, 40].entries()) {
    const pause = pauses[i + 1] ?? 0;
    t.true(pause >= seconds - 1 && pause <= seconds * 1.4 + 2, String(pauses));
  }
  t.true(bench.containers('main').length <= 2, 'only the newest two instances are kept');
  t.true(bench.events.some(({ reason }) => reason === 'BackOff'));
});

for (const [policy, exitCode, phase] of [
  ['Never', 0, 'Succeeded'],
  ['Never', 1, 'Failed'],
  ['OnFailure', 0, 'Succeeded'],
] as const) {
  test(`with policy ${policy}, exit code ${exitCode} ends the pod as ${phase}, and no container is restarted`, async (t) => {
    const bench = await startBench(t, { script: () => behaviours.exitAfter(1000, exitCode) });
    const pod = testPod('job', { restartPolicy: policy });
    bench.pods.put(pod);
    await bench.until(() => bench.status(pod).phase === phase);
    await bench.pass(60_000);
    t.is(bench.containers('main').length, 1);
    t.is(bench.status(pod).containerStatuses?.[0]?.state?.terminated?.exitCode, exitCode);
    t.true(
      [...bench.world.sandboxes.values()].every(({ snapshot }) => snapshot.state === 'notReady'),
      'the sandbox is stopped',
    );
    // Another agent finds it ended and leaves it so.
    await bench.agent.stop();
    await bench.again();
    await bench.until(() => bench.status(pod).phase === phase);
    await bench.pass(10_000);
    t.is(bench.containers('main').length, 1);
  });
}

test('init containers run sequentially before the other containers', async (t) => {
  const order: string[] = [];
  const bench = await startBench(t, {
    script: ({ metadata }) => {
      order.push(metadata.name);
      return metadata.name.startsWith('init') ? behaviours.exitAfter(2000) : behaviours.runForever;
    },
  });
  const container = (name: string) => ({ name, image: 'app:1' });
  const pod = testPod('steps', {
    initContainers: [container('init-a'), container('init-b')],
    containers: [container('main')],
  });
  bench.pods.put(pod);
  await bench.until(() => order.length === 1);
  await bench.until(() => bench.status(pod).initContainerStatuses?.[0]?.state?.running);
  t.is(bench.status(pod).phase, 'Pending');
  t.is(bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason, 'PodInitializing');
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.deepEqual(order, ['init-a', 'init-b', 'main']);
  t.is(bench.status(pod).conditions?.find(({ type }) => type === 'Initialized')?.status, 'True');
});

test('a failed init container with policy Never fails the pod', async (t) => {
  const bench = await startBench(t, { script: () => behaviours.exitAfter(100, 7) });
  const pod = testPod('steps', { restartPolicy: 'Never', initContainers: [{ name: 'init', image: 'app:1' }] });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Failed');
  t.is(bench.containers('main').length, 0);
});

test('a lost sandbox is replaced, and its containers run again in the new one', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const [first] = bench.world.sandboxes.keys();
  bench.world.loseSandbox(first ?? '');
  await bench.until(() => bench.containers('main').some(({ state, attempt }) => state === 'running' && attempt === 1));
  t.true(bench.events.some(({ reason }) => reason === 'SandboxChanged'));
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.restartCount === 1);
});

test('a container with a changed specification is replaced at once; the other containers keep running', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web', {
    containers: [
      { name: 'main', image: 'app:1' },
      { name: 'other', image: 'app:1' },
    ],
  });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  bench.pods.put({
    ...pod,
    spec: {
      ...pod.spec,
      containers: [
        { name: 'main', image: 'app:2' },
        { name: 'other', image: 'app:1' },
      ],
    },
  });
  await bench.until(() => bench.containers('main').some(({ state, attempt }) => state === 'running' && attempt === 1));
  t.is(bench.containers('other').length, 1);
});

test('a changed image ends the back-off of a crashing container', async (t) => {
  let mended = false;
  const bench = await startBench(t, { script: () => (mended ? behaviours.runForever : behaviours.crashLoop(0, 1)) });
  const pod = testPod('crash');
  bench.pods.put(pod);
  const newest = () => bench.containers('main')[0];
  await bench.until(() => newest()?.attempt === 3 && newest()?.state === 'exited', 100_000);
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason === 'CrashLoopBackOff');
  mended = true;
  const from = bench.clock.monotonic();
  bench.pods.put({ ...pod, spec: { ...pod.spec, containers: [{ name: 'main', image: 'app:2' }] } });
  await bench.until(() => newest()?.state === 'running', 60_000);
  const seconds = (bench.clock.monotonic() - from) / 1000;
  t.true(seconds < 20, `40 s of the pause were left, it took ${seconds}`);
});

test('the active deadline ends a pod as failed', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('slow', { activeDeadlineSeconds: 20 });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await bench.until(() => bench.status(pod).phase === 'Failed', 40_000);
  t.is(bench.status(pod).reason, 'DeadlineExceeded');
  await bench.until(() => bench.containers('main')[0]?.state === 'exited');
});

test('a pod that ignores the stop signal is killed after its grace period', async (t) => {
  const bench = await startBench(t, { script: () => behaviours.ignoresStop });
  const pod = testPod('stubborn', { terminationGracePeriodSeconds: 5 });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const from = bench.clock.monotonic();
  bench.pods.remove(pod);
  await bench.until(() => bench.containers().length === 0);
  const seconds = (bench.clock.monotonic() - from) / 1000;
  t.true(seconds >= 5 && seconds < 9, `${seconds}`);
});

test('a shorter grace period replaces a longer one that is running', async (t) => {
  const bench = await startBench(t, { script: () => behaviours.ignoresStop });
  const pod = testPod('stubborn', { terminationGracePeriodSeconds: 600 });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const deleted = (seconds: number) => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: seconds },
  });
  bench.pods.put(deleted(600));
  await bench.pass(10_000);
  t.is(bench.containers('main')[0]?.state, 'running');
  bench.pods.put(deleted(1));
  await bench.until(() => bench.containers().length === 0, 10_000);
  t.pass();
});

test('an agent that is killed and restarted adopts every pod and starts none again', async (t) => {
  const bench = await startBench(t);
  const all = Array.from({ length: 20 }, (_, i) => testPod(`web-${i}`));
  bench.pods.put(...all);
  await bench.until(() => all.every((pod) => bench.status(pod).phase === 'Running'));
  const before = bench
    .containers()
    .map(({ id }) => id)
    .sort();
  await bench.agent.stop();
  t.true(
    bench.containers().every(({ state }) => state === 'running'),
    'nothing ends with the agent',
  );
  await bench.again();
  await bench.until(() => all.every((pod) => bench.status(pod).phase === 'Running'));
  await bench.pass(130_000);
  t.deepEqual(
    bench
      .containers()
      .map(({ id }) => id)
      .sort(),
    before,
  );
  t.true(bench.containers().every(({ attempt }) => attempt === 0));
});

test('a pod that no source contains is ended only after every source has delivered its pods', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await bench.agent.stop();
  bench.pods.remove(pod);
  bench.pods.seen = false;
  await bench.again();
  await bench.pass(10_000);
  t.is(bench.containers('main')[0]?.state, 'running');
  bench.pods.seen = true;
  await bench.until(() => bench.world.sandboxes.size === 0);
  t.pass();
});

test('an edited manifest is a new pod, which waits until the old one has been removed', async (t) => {
  const bench = await startBench(t, { script: () => ({ stopAfterMs: 5000 }) });
  const old = testPod('web');
  bench.pods.put(old);
  await bench.until(() => bench.status(old).phase === 'Running');
  const next = testPod('web');
  bench.pods.remove(old);
  bench.pods.put(next);
  await bench.pass(3000);
  t.is(bench.containers().length, 1, 'the old one still ends');
  await bench.until(() => bench.status(next).phase === 'Running');
  t.is(bench.containers().length, 1);
});
