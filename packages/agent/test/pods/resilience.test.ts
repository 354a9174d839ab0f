import { RuntimeError } from '@keelson/container-runtime';
import { behaviours } from '@keelson/runtime-fake';
import test from 'ava';
import { startBench, testPod } from '../support/bench.ts';

test('while the runtime is unavailable pods are not changed, and they are synced when it is available again', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  bench.world.unreachable = true;
  const late = testPod('late');
  bench.pods.put(late);
  await bench.pass(60_000);
  t.is(bench.status(pod).phase, 'Running');
  t.is(bench.containers().length, 1);
  bench.world.unreachable = false;
  await bench.until(() => bench.status(late).phase === 'Running');
  t.is(bench.containers().filter(({ attempt }) => attempt > 0).length, 0, 'nothing was restarted');
});

test('a call that hangs ends at its deadline, delays no other pod, and is retried', async (t) => {
  const bench = await startBench(t, { config: { runtimeRequestTimeoutMs: 5000 } });

  bench.world.hang('createContainer');
  const pod = testPod('stuck');
  bench.pods.put(pod);
  const begun = bench.clock.monotonic();
  await bench.until(() => bench.world.calls.get('createContainer') === 1);
  bench.world.resume('createContainer');
  const neighbour = testPod('neighbour');
  bench.pods.put(neighbour);
  await bench.until(() => bench.status(neighbour).phase === 'Running');
  t.true(bench.clock.monotonic() - begun < 5000, 'the call still hangs');
  t.is(bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason, 'ContainerCreating');
  bench.world.hang('createContainer');
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerError');
  bench.world.resume('createContainer');
  await bench.until(() => bench.status(pod).phase === 'Running');
});

test('a pod can be ended while a start hangs', async (t) => {
  const bench = await startBench(t);
  bench.world.hang('startContainer');
  const pod = testPod('stuck');
  bench.pods.put(pod);
  await bench.until(() => bench.containers().length === 1);
  bench.pods.remove(pod);
  await bench.until(() => bench.world.sandboxes.size === 0, 20_000);
  t.is(bench.containers().length, 0);
});

test('a pod that is ended while its container starts has its full grace period', async (t) => {
  const bench = await startBench(t, { script: () => ({ startDelayMs: 1000, stopAfterMs: 3000 }) });
  const pod = testPod('early');
  bench.pods.put(pod);
  await bench.until(() => bench.world.calls.get('startContainer') === 1);
  bench.pods.remove(pod);
  await bench.pass(2000);
  t.is(bench.world.calls.get('stopContainer'), 1);
  t.is(bench.containers('main')[0]?.state, 'running', 'it is being stopped, not killed');
  await bench.until(() => bench.world.sandboxes.size === 0, 20_000);
  t.is(bench.containers().length, 0);
});

test('invalid pods do not affect a valid one', async (t) => {
  const bench = await startBench(t, {
    pull: (reference) => (reference.includes('bad') ? { error: { code: 'PullFailed', message: 'no route' } } : {}),
  });
  const image = testPod('image', { containers: [{ name: 'main', image: 'bad:1' }] });
  const never = testPod('never', { containers: [{ name: 'main', image: 'absent:1', imagePullPolicy: 'Never' }] });
  const name = testPod('name', { containers: [{ name: 'main', image: 'NOT valid' }] });
  const volume = testPod('volume', { volumes: [{ name: 'v', nfs: { server: 's', path: '/' } }] });
  const config = testPod('config', {
    containers: [{ name: 'main', image: 'app:1', envFrom: [{ configMapRef: { name: 'none' } }] }],
  });
  const privileged = testPod('privileged', {
    containers: [{ name: 'main', image: 'app:1', securityContext: { privileged: true } }],
  });
  const kata = testPod('kata', { runtimeClassName: 'kata' });
  const good = testPod('good');
  bench.pods.put(image, never, name, volume, config, privileged, kata, good);
  await bench.until(() => bench.status(good).phase === 'Running');
  const reason = (pod: typeof good) => bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason;
  await bench.until(() => reason(image) === 'ErrImagePull' || reason(image) === 'ImagePullBackOff');
  await bench.until(() => reason(never) === 'ErrImageNeverPull');
  await bench.until(() => reason(name) === 'InvalidImageName');
  await bench.until(() => reason(config) === 'CreateContainerConfigError');
  await bench.until(() => bench.events.some((event) => event.pod === 'volume' && event.reason === 'FailedMount'));
  t.is(reason(privileged), 'Blocked');
  t.is(bench.status(privileged).reason, 'Forbidden');
  t.is(bench.status(privileged).phase, 'Pending');
  t.is(bench.status(kata).phase, 'Failed');
  t.is(bench.status(kata).reason, 'UnsupportedPod');
});

test('failed pulls are retried after 10 s, then 20 s, and the status shows the back-off', async (t) => {
  const pulls: number[] = [];
  const bench = await startBench(t, {
    pull: () => {
      pulls.push(bench.clock.monotonic());
      return { error: { code: 'PullFailed', message: 'no route' } };
    },
  });
  const pod = testPod('image');
  bench.pods.put(pod);
  await bench.until(() => pulls.length === 1);
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.state?.waiting?.reason === 'ErrImagePull');
  await bench.until(() => pulls.length === 4, 200_000);
  const pauses = pulls.slice(1).map((at, i) => Math.round((at - (pulls[i] ?? 0)) / 1000));
  t.true(
    pauses.every((seconds, i) => Math.abs(seconds - 10 * 2 ** i) <= 1),
    String(pauses),
  );
});

test('pods beyond the capacity of the node are rejected permanently', async (t) => {
  const bench = await startBench(t, { config: { limits: { maxPods: 2, podsPerCore: 0, allowPrivileged: false } } });
  const all = [testPod('a'), testPod('b'), testPod('c')];
  bench.pods.put(...all);
  await bench.until(() => bench.status(all[2]!).phase === 'Failed');
  t.is(bench.status(all[2]!).reason, 'OutOfpods');
  await bench.until(() => bench.status(all[1]!).phase === 'Running');
  // A finished pod takes no place, nor does one that was refused.
  const last = [testPod('d', { restartPolicy: 'Never' }), testPod('e'), testPod('f')];
  bench.pods.remove(all[0]!);
  await bench.until(() => bench.world.sandboxes.size === 1);
  bench.pods.put(last[0]!);
  await bench.until(() => bench.status(last[0]!).phase === 'Running');
  bench.world.exit(bench.containers('main')[0]?.id ?? '', 0);
  await bench.until(() => bench.status(last[0]!).phase === 'Succeeded');
  bench.pods.put(last[1]!);
  await bench.until(() => bench.status(last[1]!).phase === 'Running');
  bench.pods.put(last[2]!);
  await bench.until(() => bench.status(last[2]!).reason === 'OutOfpods');
});

test('three failed liveness probes replace the container; failed readiness probes do not', async (t) => {
  let alive = true;
  let ready = false;
  const bench = await startBench(t, {
    script: () => ({
      exec: ({ command }) => {
        const exitCode = (command[0] === 'alive' ? alive : ready) ? 0 : 1;
        return { exitCode, stdout: Buffer.from('said so'), stderr: Buffer.alloc(0) };
      },
    }),
  });
  const probe = (word: string) => ({
    exec: { command: [word] },
    periodSeconds: 2,
    failureThreshold: 3,
    timeoutSeconds: 1,
    successThreshold: 1,
  });
  const pod = testPod('probed', {
    containers: [{ name: 'main', image: 'app:1', livenessProbe: probe('alive'), readinessProbe: probe('ready') }],
  });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await bench.pass(20_000);
  t.is(bench.status(pod).containerStatuses?.[0]?.ready, false);
  t.is(bench.status(pod).containerStatuses?.[0]?.restartCount, 0);
  ready = true;
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.ready);
  alive = false;
  const from = bench.clock.monotonic();
  await bench.until(() => bench.containers('main').some(({ attempt }) => attempt === 1));
  const seconds = (bench.clock.monotonic() - from) / 1000;
  t.true(seconds >= 4 && seconds <= 9, `${seconds}`);
  t.true(
    bench.events.some(({ reason, message }) => reason === 'Unhealthy' && message === 'Liveness probe failed: said so'),
  );
});

test('a container whose liveness probe fails repeatedly is restarted each time, and the count grows by one', async (t) => {
  const bench = await startBench(t, {
    script: () => ({ exec: () => ({ exitCode: 1, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }) }),
  });
  const livenessProbe = { exec: { command: ['dead'] }, periodSeconds: 1, failureThreshold: 1 };
  const pod = testPod('again', {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'main', image: 'app:1', livenessProbe }],
  });
  bench.pods.put(pod);
  const counts: number[] = [];
  await bench.until(() => {
    const count = bench.status(pod).containerStatuses?.[0]?.restartCount ?? 0;
    if (counts.at(-1) !== count) counts.push(count);
    return count === 5;
  }, 400_000);
  t.deepEqual(counts, [0, 1, 2, 3, 4, 5]);
});

test('other probes wait for the startup probe, and its failure replaces the container', async (t) => {
  let up = false;
  const asked: string[] = [];
  const bench = await startBench(t, {
    script: () => ({
      exec: ({ command }) => {
        asked.push(command[0] ?? '');
        return { exitCode: command[0] === 'up' && !up ? 1 : 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
      },
    }),
  });
  const pod = testPod('slow', {
    containers: [
      {
        name: 'main',
        image: 'app:1',
        startupProbe: { exec: { command: ['up'] }, periodSeconds: 1, failureThreshold: 5 },
        livenessProbe: { exec: { command: ['alive'] }, periodSeconds: 1 },
      },
    ],
  });
  bench.pods.put(pod);
  await bench.until(() => asked.length >= 3);
  t.true(asked.every((word) => word === 'up'));
  t.is(bench.status(pod).containerStatuses?.[0]?.started, false);
  await bench.until(() => bench.containers('main').some(({ attempt }) => attempt === 1));
  up = true;
  await bench.until(() => asked.includes('alive'));
  await bench.until(() => bench.status(pod).containerStatuses?.[0]?.started);
  t.is(asked.indexOf('alive'), asked.lastIndexOf('up') + 1, 'a startup probe ends with its success');
});

test('hooks run after the start and before the end; a failed postStart ends the container', async (t) => {
  const asked: string[] = [];
  const bench = await startBench(t, {
    script: () => ({
      exec: ({ command }) => {
        asked.push(command[0] ?? '');
        if (command[0] === 'fail') throw new RuntimeError('StartFailed', 'no such file');
        return { exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
      },
    }),
  });
  const lifecycle = { postStart: { exec: { command: ['hello'] } }, preStop: { exec: { command: ['bye'] } } };
  const pod = testPod('polite', { containers: [{ name: 'main', image: 'app:1', lifecycle }] });
  const failing = testPod('failing', {
    containers: [{ name: 'main', image: 'app:1', lifecycle: { postStart: { exec: { command: ['fail'] } } } }],
  });
  bench.pods.put(pod, failing);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await bench.until(() => bench.events.some(({ reason }) => reason === 'FailedPostStartHook'));
  t.true(asked.includes('hello') && !asked.includes('bye'));
  // The next agent knows the hook only from the annotations of the container.
  await bench.agent.stop();
  bench.pods.remove(pod);
  await bench.again();
  await bench.until(() => asked.includes('bye'));
  await bench.until(() => bench.world.sandboxes.size === 1);
});

test('a sidecar starts before the other containers, runs beside them, and ends after them', async (t) => {
  const order: string[] = [];
  const bench = await startBench(t, {
    script: ({ metadata }) => {
      order.push(metadata.name);
      return metadata.name === 'main' ? behaviours.exitAfter(3000) : { stopAfterMs: 1000 };
    },
  });
  const pod = testPod('with-sidecar', {
    restartPolicy: 'Never',
    initContainers: [{ name: 'side', image: 'app:1', restartPolicy: 'Always' }],
  });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.deepEqual(order, ['side', 'main']);
  await bench.until(() => bench.containers('main')[0]?.state === 'exited');
  t.is(bench.containers('side')[0]?.state, 'running');
  await bench.until(() => bench.status(pod).phase === 'Succeeded');
  await bench.until(() => bench.containers('side')[0]?.state === 'exited');
  t.deepEqual(order, ['side', 'main'], 'it is not started again');
});

test('a step of a sync that fails is an event, and is retried', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const [container] = pod.spec.containers ?? [];
  bench.world.unreachable = true;
  bench.pods.put({ ...pod, spec: { ...pod.spec, containers: [{ ...container, name: 'main', image: 'app:2' }] } });
  await bench.until(() => bench.events.some(({ reason }) => reason === 'FailedSync'));
  t.regex(bench.events.find(({ reason }) => reason === 'FailedSync')?.message ?? '', /^error syncing pod: \S/);
  bench.world.unreachable = false;
  await bench.until(() => bench.containers('main').some(({ attempt, state }) => attempt === 1 && state === 'running'));
});

test('an ephemeral container starts in the running pod, unless a pod that contains it would have been rejected', async (t) => {
  const bench = await startBench(t);
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const ephemeralContainers = [
    { name: 'shell', image: 'app:1' },
    { name: 'probed', image: 'app:1', volumeDevices: [{ name: 'v', devicePath: '/d' }] },
    { name: 'strong', image: 'app:1', securityContext: { privileged: true } },
  ];
  bench.pods.put({ ...pod, spec: { ...pod.spec, ephemeralContainers } });
  const shown = (name: string) =>
    bench.status(pod).ephemeralContainerStatuses?.find((status) => status.name === name)?.state;
  await bench.until(() => shown('shell')?.running !== undefined && shown('strong')?.waiting?.reason === 'Blocked');
  t.like(shown('probed')?.waiting, { reason: 'Blocked', message: 'this agent does not support block devices' });
  t.is(shown('strong')?.waiting?.message, 'pod may not have privileged containers');
  t.deepEqual(bench.containers('probed'), []);
});

test('a pod waits for the network of the runtime, unless it uses that of the node', async (t) => {
  const bench = await startBench(t);
  bench.world.networkReady = false;
  await bench.pass(20_000);
  const [own, shared] = [testPod('own'), testPod('shared', { hostNetwork: true })];
  bench.pods.put(own, shared);
  await bench.until(() => bench.status(shared).phase === 'Running');
  await bench.until(() => bench.events.some(({ pod, reason }) => pod === 'own' && reason === 'NetworkNotReady'));
  t.is(bench.world.sandboxes.size, 1);
  bench.world.networkReady = true;
  await bench.until(() => bench.status(own).phase === 'Running');
});
