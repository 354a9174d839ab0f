import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TokenBucket } from '@keelson/client';
import type { ContainerRuntime, ContainerStatus } from '@keelson/container-runtime';
import { FakeClock, systemClock } from '@keelson/core/runtime';
import type { coreV1 } from '@keelson/kinds';
import test from 'ava';
import { withProgressDeadline } from '../../../src/machine/images/image-puller.ts';
import { ProbeWorker } from '../../../src/pods/probes/probe-worker.ts';
import { createProber, type Observation } from '../../../src/pods/probes/prober.ts';
import { settle } from '../../support/bench.ts';

const status = { id: 'c', metadata: { name: 'main', attempt: 0 }, state: 'running' } as ContainerStatus;
const signal = new AbortController().signal;

test('HTTP and TCP probes ask the pod, by number or name of the port, and heed codes and headers', async (t) => {
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
  const look = createProber({} as ContainerRuntime, systemClock, signal);
  const http = (path: string, to: number | string = port): Promise<Observation> =>
    look(
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
  const tcp = (to: number) => look({ tcpSocket: { port: to } }, container, status, '127.0.0.1');
  t.is((await tcp(port)).result, 'success');
  t.is((await tcp(1)).result, 'failure');
});

interface Row {
  readonly title: string;
  readonly kind: 'liveness' | 'readiness' | 'startup';
  readonly probe: coreV1.Probe;
  /** s, f or u for each probe; the last one repeats. */
  readonly looks: string;
  /** Verdict after each probe: +, - or ?. */
  readonly verdicts: string;
}

const rows: readonly Row[] = [
  {
    title: 'readiness is false before the first success',
    kind: 'readiness',
    probe: { failureThreshold: 3, successThreshold: 1 },
    looks: 'fs',
    verdicts: '-+',
  },
  {
    title: 'readiness counts successes in a row',
    kind: 'readiness',
    probe: { successThreshold: 3 },
    looks: 'ssfsss',
    verdicts: '-----+',
  },
  {
    title: 'liveness is true before the first failure',
    kind: 'liveness',
    probe: { failureThreshold: 3 },
    looks: 'fffs',
    verdicts: '++--',
  },
  {
    title: 'a success resets the count of failures',
    kind: 'liveness',
    probe: { failureThreshold: 2 },
    looks: 'fsfsff',
    verdicts: '+++++-',
  },
  {
    title: 'a probe that could not be run is not counted',
    kind: 'liveness',
    probe: { failureThreshold: 2 },
    looks: 'fufs',
    verdicts: '++--',
  },
  {
    title: 'startup is open until it passes',
    kind: 'startup',
    probe: { failureThreshold: 5 },
    looks: 'ffs',
    verdicts: '??+',
  },
  { title: 'startup fails in the end', kind: 'startup', probe: { failureThreshold: 2 }, looks: 'ff', verdicts: '?-' },
];

for (const { title, kind, probe, looks, verdicts } of rows) {
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
        const result = words[(looks[count] ?? looks.at(-1)) as 's' | 'f' | 'u'];
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
    let said = '';
    for (const _ of verdicts) {
      clock.advance(said === '' ? 100 : 5_000);
      await settle(3);
      said += worker.verdict === undefined ? '?' : worker.verdict ? '+' : '-';
    }
    t.is(said, verdicts);
    worker.stop();
  });
}

test('a pull that makes no progress is ended; one that goes on slowly is not', async (t) => {
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
  let tell = () => {};
  let finish = (_: string) => {};
  const slow = withProgressDeadline(clock, 1000, signal, (onProgress) => {
    tell = onProgress;
    return new Promise<string>((resolve) => {
      finish = resolve;
    });
  });
  for (let i = 0; i < 5; i += 1) {
    clock.advance(900);
    tell();
  }
  finish('done');
  t.is(await slow, 'done');
});

test('a bucket gives its burst at once and then its rate', (t) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 5, 10);
  const take = () => Array.from({ length: 20 }, () => bucket.tryTake()).filter(Boolean).length;
  t.is(take(), 10);
  t.is(bucket.waitMs(), 200);
  clock.advance(1000);
  t.is(take(), 5);
});
