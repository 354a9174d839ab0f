import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ContainerRuntime, ContainerStatus, ExecSyncResult } from '@keelson/container-runtime';
import { FakeClock, silentLogger } from '@keelson/core/runtime';
import type { coreV1, Pod } from '@keelson/kinds';
import test from 'ava';
import type { PodEvents } from '../../../src/base/events/event-recorder.ts';
import { ContainerKiller, endPodProcesses } from '../../../src/pods/containers/container-killer.ts';
import { runHook } from '../../../src/pods/containers/hook-runner.ts';
import { containerAnnotations, type PodRuntimeState } from '../../../src/runtime-view/runtime-objects.ts';
import { settle, testPod } from '../../support/bench.ts';

const { signal } = new AbortController();
const result = (exitCode: number, stdout = '', stderr = ''): ExecSyncResult => ({
  exitCode,
  stdout: Buffer.from(stdout),
  stderr: Buffer.from(stderr),
});

function hookOf(handler: coreV1.LifecycleHandler, podIp: string | undefined, execSync: () => Promise<ExecSyncResult>) {
  const target = { containerId: 'c', container: { name: 'main', ports: [{ name: 'web', containerPort: 1 }] }, podIp };
  return runHook(handler, target, { execSync } as unknown as ContainerRuntime, new FakeClock(), signal);
}

test('the exec command of a hook fails with its exit code and output', async (t) => {
  const exec = { exec: { command: ['sh', '-c'] } };
  await t.notThrowsAsync(hookOf(exec, undefined, async () => result(0)));
  await t.throwsAsync(
    hookOf(exec, undefined, async () => result(3, 'out', 'err')),
    { message: "command 'sh -c' exited with 3: outerr" },
  );
  await t.throwsAsync(
    hookOf({}, undefined, async () => result(0)),
    { message: 'this kind of hook is not supported' },
  );
});

test('the HTTP request of a hook is sent to the pod or the given host, and any status from 200 to 399 is a success', async (t) => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers['x-own'] ?? '-'}`);
    response.statusCode = Number(request.url?.slice(1)) || 204;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const get = (httpGet: Partial<coreV1.HTTPGetAction>, podIp: string | undefined = '127.0.0.1') =>
    hookOf({ httpGet: { port, ...httpGet } }, podIp, async () => result(0));
  await t.notThrowsAsync(get({ httpHeaders: [{ name: 'X-Own', value: 'yes' }] }));
  await t.notThrowsAsync(get({ path: '/200', host: '127.0.0.1' }, ''));
  await t.notThrowsAsync(get({ path: '399' }));
  await t.throwsAsync(get({ path: '/400' }), { message: 'the request returned status code 400' });
  await t.throwsAsync(get({}, ''), { message: 'the pod has no address to send the request to' });
  await t.throwsAsync(get({ port: 'none' }), { message: /couldn't find port: none/ });
  await t.throwsAsync(get({ scheme: 'HTTPS' }), { message: /SSL|EPROTO|socket/ });
  t.deepEqual(seen, ['/ yes', '/200 -', '/399 -', '/400 -']);
});

test('the sleep action of a hook ends after its seconds, or when its container ends', async (t) => {
  const clock = new FakeClock();
  const abort = new AbortController();
  const target = { containerId: 'c', container: undefined, podIp: undefined };
  const sleep = () => runHook({ sleep: { seconds: 5 } }, target, {} as ContainerRuntime, clock, abort.signal);
  let ended = false;
  const slept = sleep().then(() => (ended = true));
  clock.advance(4999);
  await settle(3);
  t.false(ended);
  clock.advance(1);
  t.true(await slept);
  const aborted = sleep();
  abort.abort(new Error('no more'));
  await t.throwsAsync(aborted, { message: 'no more' });
});

/** Ends containers of a runtime that records its calls; hooks last `hookMs`. */
function killing(hookMs = 0, exitCode = 0) {
  const clock = new FakeClock();
  const calls: string[] = [];
  const failing = new Set<string>();
  const runtime = {
    execSync: async (_: string, { command }: { readonly command: readonly string[] }) => {
      calls.push(`exec ${command.join(' ')}`);
      if (hookMs > 0) await new Promise<void>((resolve) => clock.after(hookMs, resolve));
      return result(exitCode);
    },
    stopContainer: async (id: string, { gracePeriodMs }: { readonly gracePeriodMs: number }) => {
      calls.push(`stop ${id} ${gracePeriodMs}`);
      if (failing.has(id)) throw new Error(`${id} does not stop`);
    },
    stopPodSandbox: async (id: string) => void calls.push(`stop ${id}`),
  } as unknown as ContainerRuntime;
  const events: PodEvents = { record: (_, type, reason, message) => void calls.push(`${type} ${reason} ${message}`) };
  const killer = new ContainerKiller({ runtime, clock, logger: silentLogger, events, callTimeoutMs: 1000 });
  return { clock, calls, failing, killer, tools: { runtime, killer, callTimeoutMs: 1000 } };
}

const preStop = { lifecycle: { preStop: { exec: { command: ['bye'] } } } };
const statusOf = (pod: Pod, name: string): ContainerStatus => {
  const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((one) => one.name === name)!;
  const annotations = containerAnnotations(pod, container, undefined);
  return { id: name, metadata: { name, attempt: 0 }, state: 'running', annotations } as unknown as ContainerStatus;
};

for (const [title, spec, graceSeconds, hookMs, expected] of [
  ['the grace period of the pod', { terminationGracePeriodSeconds: 30 }, undefined, 0, ['stop main 30000']],
  ['the grace period of the request', {}, 7, 0, ['stop main 7000']],
  ['at least two seconds', {}, 1, 0, ['stop main 2000']],
  ['no grace period when the request sets 0', {}, 0, 0, ['stop main 0']],
  [
    'a preStop hook, whose duration is part of the grace period',
    { containers: [{ name: 'main', ...preStop }] },
    10,
    4000,
    ['exec bye', 'stop main 6000'],
  ],
  [
    'two seconds after a preStop hook that exceeds the grace period',
    { containers: [{ name: 'main', ...preStop }] },
    10,
    60_000,
    ['exec bye', 'Warning FailedPreStopHook', 'stop main 2000'],
  ],
  ['no preStop hook without a grace period', { containers: [{ name: 'main', ...preStop }] }, 0, 0, ['stop main 0']],
] as const) {
  test(`a stopped container gets ${title}`, async (t) => {
    const { clock, calls, killer } = killing(hookMs);
    const pod = testPod('p', spec as Partial<Pod['spec']>);
    const request = { pod, status: statusOf(pod, 'main'), message: 'bye', graceSeconds, podIp: undefined };
    let ended = false;
    void killer.kill(request, signal).then(() => (ended = true));
    for (let second = 0; second < 20 && !ended; second += 1) {
      await settle(3);
      clock.advance(1000);
    }
    const [first, ...others] = calls;
    t.is(first, 'Normal Killing bye');
    t.deepEqual(
      others.map((call) => call.split(' PreStopHook')[0]),
      [...expected],
    );
  });
}

test('a container of an unknown pod is stopped according to its annotations', async (t) => {
  const { calls, killer } = killing(0, 1);
  const pod = testPod('p', { containers: [{ name: 'main', ...preStop }], terminationGracePeriodSeconds: 9 });
  const request = { pod: undefined, message: '', podIp: undefined };
  await killer.kill({ ...request, status: statusOf(pod, 'main') }, signal);
  t.deepEqual(calls, ['exec bye', 'stop main 9000'], 'there is no pod for events');
  calls.length = 0;
  const status = { ...statusOf(pod, 'main'), annotations: {} };
  await killer.kill({ ...request, status }, signal);
  t.deepEqual(calls, ['stop main 2000']);
});

test('sidecars stop after the other containers, then the sandbox; a failure stops neither sequence', async (t) => {
  const { calls, failing, tools } = killing();
  const pod = testPod('p', {
    initContainers: [{ name: 'side', restartPolicy: 'Always' }],
    containers: [{ name: 'main' }, { name: 'done' }],
  });
  const state = {
    containers: [statusOf(pod, 'side'), statusOf(pod, 'main'), { ...statusOf(pod, 'done'), state: 'exited' }],
    sandboxes: [
      { id: 'new', state: 'ready', ips: [] },
      { id: 'old', state: 'notReady', ips: [] },
    ],
  } as unknown as PodRuntimeState;
  await endPodProcesses(pod, state, '', 5, tools, signal);
  const stopped = () => calls.filter((call) => call.startsWith('stop'));
  t.deepEqual(stopped(), ['stop main 5000', 'stop side 5000', 'stop new']);
  t.true(calls.includes('Normal Killing Stopping container main'));
  calls.length = 0;
  failing.add('main');
  await t.throwsAsync(endPodProcesses(pod, state, 'why', 5, tools, signal), { message: 'main does not stop' });
  t.deepEqual(stopped(), ['stop main 5000', 'stop side 5000'], 'a sandbox with processes is not stopped');
  t.true(calls.includes('Normal Killing why'));
});
