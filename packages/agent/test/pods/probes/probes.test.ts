import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { TokenBucket } from '@keelson/client';
import { type ContainerRuntime, type ContainerStatus, RuntimeError } from '@keelson/container-runtime';
import { FakeClock, systemClock } from '@keelson/core/runtime';
import type { Container, coreV1, Pod } from '@keelson/kinds';
import test from 'ava';
import { withProgressDeadline } from '../../../src/machine/images/image-puller.ts';
import { httpCheck } from '../../../src/pods/probes/http-check.ts';
import { PodProbes } from '../../../src/pods/probes/pod-probes.ts';
import { portOf } from '../../../src/pods/probes/port-of.ts';
import { ProbeWorker } from '../../../src/pods/probes/probe-worker.ts';
import { createProber, type Observation } from '../../../src/pods/probes/prober.ts';
import type { PodRuntimeState } from '../../../src/runtime-view/runtime-objects.ts';
import { settle, testPod } from '../../support/bench.ts';

const status = { id: 'c', metadata: { name: 'main', attempt: 0 }, state: 'running' } as ContainerStatus;
const signal = new AbortController().signal;

test('HTTP and TCP probes connect to the pod, by number or name of the port, and evaluate status codes', async (t) => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers['x-own']}`);
    if (request.url === '/slow') return;
    response.statusCode = Number(request.url?.slice(1));
    response.end('body');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const container = { name: 'main', ports: [{ name: 'web', containerPort: port }] };
  const prober = createProber({} as ContainerRuntime, systemClock, signal);
  const http = (path: string, to: number | string = port): Promise<Observation> =>
    prober(
      { httpGet: { path, port: to, httpHeaders: [{ name: 'X-Own', value: 'yes' }] }, timeoutSeconds: 1 },
      container,
      status,
      '127.0.0.1',
    );
  t.is((await http('/200')).result, 'success');
  t.is((await http('/302', 'web')).result, 'success');
  t.deepEqual(await http('/500'), { result: 'failure', output: 'HTTP probe failed with statuscode: 500' });
  t.is((await http('/404')).result, 'failure');
  t.regex((await http('/200', 'none')).output, /couldn't find port/);
  t.deepEqual(await http('/slow'), { result: 'failure', output: 'no answer within 1s' });
  t.is(seen[0], '/200 yes');
  const tcp = (to: number) => prober({ tcpSocket: { port: to } }, container, status, '127.0.0.1');
  t.is((await tcp(port)).result, 'success');
  t.is((await tcp(1)).result, 'failure');
});

test('a gRPC probe succeeds when the health service answers SERVING for its service', async (t) => {
  const long = 'service.'.repeat(20);
  const server = createHttp2Server();
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => {});
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const message = Buffer.concat(chunks).subarray(5);
      const service = message.subarray((message[1] ?? 0) < 128 ? 2 : 3).toString();
      if (service === 'hangs') return undefined;
      const kind = { ':status': 200, 'content-type': 'application/grpc' };
      if (service === 'none') return stream.respond({ ...kind, 'grpc-status': '12' }, { endStream: true });
      if (service === 'unknown') {
        return stream.respond({ ...kind, 'grpc-status': '5', 'grpc-message': 'unknown service' }, { endStream: true });
      }
      const isServing = headers[':path'] === '/grpc.health.v1.Health/Check' && ['', long].includes(service);
      stream.respond(kind, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.from([0, 0, 0, 0, 2, 8, isServing ? 1 : 2]));
      return undefined;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const prober = createProber({} as ContainerRuntime, systemClock, signal);
  const grpc = (service?: string, to = port): Promise<Observation> =>
    prober({ grpc: { port: to, ...(service && { service }) } }, { name: 'main' }, status, '127.0.0.1');
  t.deepEqual(await grpc(), { result: 'success', output: '' });
  t.is((await grpc(long)).result, 'success');
  t.is((await grpc('down')).output, 'service unhealthy (responded with "NOT_SERVING")');
  t.deepEqual(await grpc('none'), {
    result: 'failure',
    output: 'the server does not implement the health service of gRPC',
  });
  t.regex((await grpc('unknown')).output, /status 5: unknown service/);
  t.deepEqual(await grpc('hangs'), { result: 'failure', output: 'no answer within 1s' });
  t.is((await grpc('', 1)).result, 'failure');
});

test('HTTP probes send the configured headers and host, and read only the beginning of a long response', async (t) => {
  const seen: object[] = [];
  const server = createServer((request, response) => {
    const { host, accept, 'user-agent': agent, 'x-two': two } = request.headers;
    seen.push({ url: request.url, host, accept, agent, two });
    response.end('x'.repeat(100_000));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const target = { host: '127.0.0.1', port, scheme: 'HTTP', path: 'a', headers: [] } as const;
  const { code, body } = await httpCheck(target, signal);
  t.deepEqual([code, body], [200, 'x'.repeat(10_240)]);
  const headers = [
    ...[
      { name: 'Host', value: 'example.com' },
      { name: 'User-Agent', value: 'me' },
    ],
    ...[
      { name: 'X-Two', value: '1' },
      { name: 'x-two', value: '2' },
    ],
  ];
  await httpCheck({ ...target, path: '/b', headers }, signal);
  t.deepEqual(seen, [
    { url: '/a', host: `127.0.0.1:${port}`, accept: '*/*', agent: 'keelson-agent-probe', two: undefined },
    { url: '/b', host: 'example.com', accept: '*/*', agent: 'me', two: '1, 2' },
  ]);
});

test('a port is a number, a numeric string or the name of a port', (t) => {
  const container = { name: 'main', ports: [{ name: 'web', containerPort: 8080 }] };
  for (const [port, expected] of [
    [1, 1],
    ['65535', 65_535],
    ['web', 8080],
  ] as const)
    t.is(portOf(port, container), expected);
  for (const port of [0, 65_536, '0', 'none', '-1']) t.throws(() => portOf(port, container), undefined, String(port));
});

test('a command that fails or cannot start is a failure; a runtime error is an unknown result', async (t) => {
  const abort = new AbortController();
  const probe = (answer: () => Promise<{ exitCode: number; text: string }>, from = signal) => {
    const execSync = async () => {
      const { exitCode, text } = await answer();
      return { exitCode, stdout: Buffer.from(text), stderr: Buffer.from('!') };
    };
    const prober = createProber({ execSync } as unknown as ContainerRuntime, systemClock, from);
    return prober({ exec: { command: ['x'] } }, { name: 'main' }, status, undefined);
  };
  const failed = (code: 'StartFailed' | 'DeadlineExceeded' | 'Unavailable') =>
    probe(() => Promise.reject(new RuntimeError(code, 'why')));
  t.deepEqual(await probe(async () => ({ exitCode: 0, text: 'fine' })), { result: 'success', output: 'fine!' });
  t.deepEqual(await probe(async () => ({ exitCode: 1, text: 'x'.repeat(2000) })), {
    result: 'failure',
    output: 'x'.repeat(1024),
  });
  t.deepEqual(await failed('StartFailed'), { result: 'failure', output: 'why' });
  t.deepEqual(await failed('DeadlineExceeded'), { result: 'failure', output: 'why' });
  t.deepEqual(await failed('Unavailable'), { result: 'unknown', output: 'why' });
  abort.abort();
  const ending = await probe(() => Promise.reject(new Error('ended')), abort.signal);
  t.is(ending.result, 'unknown', 'a probe that the end of the agent interrupts');
  const prober = createProber({} as ContainerRuntime, systemClock, signal);
  for (const address of [{ httpGet: { port: 1 } }, { tcpSocket: { port: 1 } }])
    t.is((await prober(address, { name: 'main' }, status, undefined)).output, 'the pod has no address');
  t.deepEqual(await prober({}, { name: 'main' }, status, '::1'), {
    result: 'failure',
    output: 'this kind of probe is not supported',
  });
});

test('exactly the running containers of a pod are probed, each with its own result, and other pods are not affected', async (t) => {
  const clock = new FakeClock();
  const asked: string[] = [];
  const results = new Map<string, boolean>();
  const changed: string[] = [];
  const probes = new PodProbes({
    run: async (_, __, { id }, podIp) => {
      asked.push(`${id} ${podIp}`);
      return { result: results.get(id) === false ? 'failure' : 'success', output: 'no' };
    },
    clock,
    events: {
      record: (_pod, type, reason, message, name) => void changed.push([type, reason, message, name].join(' ')),
    },
    onChange: (uid) => void changed.push(uid),
    random: () => 0.5,
  });
  const period = { periodSeconds: 10, failureThreshold: 1 };
  const container: Container = { name: 'main', livenessProbe: period, readinessProbe: period };
  const [web, other] = [testPod('web', { containers: [container] }), testPod('other', { containers: [container] })];
  const running = (id: string, state = 'running') =>
    ({ id, metadata: { name: 'main', attempt: 0 }, state, createdAt: clock.now() }) as ContainerStatus;
  const sync = (pod: Pod, ...containers: ContainerStatus[]) =>
    probes.sync(pod, { sandboxes: [{ ips: ['10.0.0.1'] }], containers } as unknown as PodRuntimeState);
  const next = async () => {
    asked.length = 0;
    clock.advance(10_000);
    await settle(3);
    return [...new Set(asked)].sort();
  };
  sync(web, running('w1'));
  sync(other, running('o1'));
  t.true(probes.started(running('w1')));
  t.false(probes.ready(running('w1')), 'not before the first success');
  t.deepEqual(await next(), ['o1 10.0.0.1', 'w1 10.0.0.1']);
  t.true(probes.ready(running('w1')));
  t.is(probes.failed(running('w1')), undefined);
  results.set('w1', false);
  await next();
  t.is(probes.failed(running('w1')), 'liveness');
  t.false(probes.ready(running('w1')));
  t.true(changed.includes('Warning Unhealthy Liveness probe failed: no main'));
  t.true(changed.includes(web.metadata?.uid ?? ''));
  sync(web, running('w2'), running('w1', 'exited'));
  t.deepEqual(await next(), ['o1 10.0.0.1', 'w2 10.0.0.1'], 'the replaced container is not probed');
  t.is(probes.failed(running('w1')), undefined);
  t.false(probes.started(running('w1', 'exited')));
  probes.forget(web.metadata?.uid ?? '');
  t.deepEqual(await next(), ['o1 10.0.0.1']);
  probes.stop();
  t.deepEqual(await next(), []);
});

test('a restarted agent keeps the readiness of a container until its first probe', async (t) => {
  const clock = new FakeClock();
  const container: Container = { name: 'main', readinessProbe: { periodSeconds: 10, failureThreshold: 1 } };
  const readyAfter = async (ready: boolean, containerID: string, offsetMs: number) => {
    const startedAt = clock.now();
    let count = 0;
    const probes = new PodProbes({
      run: async () => {
        count += 1;
        return { result: 'failure', output: '' };
      },
      ...{ clock, events: { record: () => {} }, onChange: () => {}, random: () => 0.5 },
    });
    t.teardown(() => probes.stop());
    const pod = testPod('p', { containers: [container] });
    const state = { running: { startedAt: new Date(startedAt + offsetMs).toISOString() } };
    const reported = { name: 'main', containerID, ready, state, restartCount: 0, image: '', imageID: '' };
    pod.status = { containerStatuses: [reported as coreV1.ContainerStatus] };
    const now = { ...status, id: 'c', startedAt, createdAt: startedAt };
    probes.sync(pod, { sandboxes: [], containers: [now] } as unknown as PodRuntimeState);
    const before = probes.ready(now);
    clock.advance(1);
    await settle(3);
    const isImmediate = count === 1;
    clock.advance(5000);
    await settle(3);
    return [before, isImmediate, count, probes.ready(now)];
  };
  // All containers of the node are known: their first probes are spread over the period.
  t.deepEqual(await readyAfter(true, 'fake://c', 1999), [true, false, 1, false]);
  t.deepEqual(await readyAfter(false, 'fake://c', 0), [false, false, 1, false]);
  t.deepEqual(await readyAfter(true, 'fake://b', 0), [false, true, 1, false], 'the result of another container');
  t.deepEqual(await readyAfter(true, 'fake://c', 2000), [false, true, 1, false], 'and of another start');
});

interface Row {
  readonly title: string;
  readonly kind: 'liveness' | 'readiness' | 'startup';
  readonly probe: coreV1.Probe;
  /** s, f or u for each probe; the last one repeats. */
  readonly outcomes: string;
  /** Verdict after each probe: +, - or ?. */
  readonly verdicts: string;
}

const rows: readonly Row[] = [
  {
    title: 'readiness is false before the first success',
    kind: 'readiness',
    probe: { failureThreshold: 3, successThreshold: 1 },
    outcomes: 'fs',
    verdicts: '-+',
  },
  {
    title: 'readiness counts successes in a row',
    kind: 'readiness',
    probe: { successThreshold: 3 },
    outcomes: 'ssfsss',
    verdicts: '-----+',
  },
  {
    title: 'liveness is true before the first failure',
    kind: 'liveness',
    probe: { failureThreshold: 3 },
    outcomes: 'fffs',
    verdicts: '++--',
  },
  {
    title: 'a success resets the count of failures',
    kind: 'liveness',
    probe: { failureThreshold: 2 },
    outcomes: 'fsfsff',
    verdicts: '+++++-',
  },
  {
    title: 'a probe that could not be run is not counted',
    kind: 'liveness',
    probe: { failureThreshold: 2 },
    outcomes: 'fufs',
    verdicts: '++--',
  },
  {
    title: 'the startup result is unknown until the probe succeeds',
    kind: 'startup',
    probe: { failureThreshold: 5 },
    outcomes: 'ffs',
    verdicts: '??+',
  },
  {
    title: 'startup fails at the failure threshold',
    kind: 'startup',
    probe: { failureThreshold: 2 },
    outcomes: 'ff',
    verdicts: '?-',
  },
];

for (const { title, kind, probe, outcomes, verdicts } of rows) {
  test(`probe: ${title}`, async (t) => {
    const clock = new FakeClock();
    const words = { s: 'success', f: 'failure', u: 'unknown' } as const;
    let count = 0;
    const worker = new ProbeWorker({
      kind,
      probe: { periodSeconds: 5, initialDelaySeconds: 7, ...probe },
      containerStartedMs: clock.now(),
      offsetMs: 0,
      initially: kind === 'liveness',
      run: async () => {
        const result = words[(outcomes[count] ?? outcomes.at(-1)) as 's' | 'f' | 'u'];
        count += 1;
        return { result, output: '' };
      },
      onFailure: () => {},
      onChange: () => {},
      clock,
    });
    worker.start();
    clock.advance(6_900);
    await settle(3);
    t.is(count, 0, 'the initial delay is kept');
    let results = '';
    for (const _ of verdicts) {
      clock.advance(results === '' ? 100 : 5_000);
      await settle(3);
      results += worker.verdict === undefined ? '?' : worker.verdict ? '+' : '-';
    }
    t.is(results, verdicts);
    worker.stop();
  });
}

test('a pull without progress is ended; a slow one continues', async (t) => {
  const clock = new FakeClock();
  const stalled = withProgressDeadline(
    clock,
    1000,
    signal,
    (_, within) =>
      new Promise<never>((_resolve, reject) => within.addEventListener('abort', () => reject(new Error('aborted')))),
  );
  const failing = t.throwsAsync(stalled, { message: /no progress for 1 s/ });
  clock.advance(1000);
  await failing;
  let reportProgress = () => {};
  let finish = (_: string) => {};
  const slow = withProgressDeadline(clock, 1000, signal, (onProgress) => {
    reportProgress = onProgress;
    return new Promise<string>((resolve) => {
      finish = resolve;
    });
  });
  for (let i = 0; i < 5; i += 1) {
    clock.advance(900);
    reportProgress();
  }
  finish('done');
  t.is(await slow, 'done');
});

test('a token bucket permits its burst at once and then its rate', (t) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 5, 10);
  const take = () => Array.from({ length: 20 }, () => bucket.tryTake()).filter(Boolean).length;
  t.is(take(), 10);
  t.is(bucket.waitMs(), 200);
  clock.advance(1000);
  t.is(take(), 5);
});
