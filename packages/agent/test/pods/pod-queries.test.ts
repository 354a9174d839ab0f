import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatLogLine } from '@keelson/container-runtime';
import test from 'ava';
import type { LogRequest } from '../../src/base/contracts/pod-queries.ts';
import { PodQueryReader, type PodQueryReaderOptions } from '../../src/pods/pod-query-reader.ts';
import { startBench, testPod } from '../support/bench.ts';

test('logs are those of the newest or the previous instance; without a log the error gives the reason', async (t) => {
  const bench = await startBench(t, {
    logs: true,
    pull: (reference) => (reference.includes('bad') ? { error: { code: 'PullFailed', message: 'no route' } } : {}),
  });
  const pod = testPod('web', {
    containers: [
      { name: 'main', image: 'app:1' },
      { name: 'lost', image: 'bad:1' },
    ],
  });
  bench.pods.put(pod);
  await bench.until(() => bench.containers('main')[0]?.state === 'running');
  const read = async (changes: Partial<LogRequest> = {}) => {
    const request: LogRequest = {
      ...{ namespace: 'default', pod: 'web', container: 'main', follow: false, previous: false, timestamps: false },
      ...{ tailLines: undefined, sinceMs: undefined, limitBytes: undefined, signal: new AbortController().signal },
      ...changes,
    };
    const parts: Buffer[] = [];
    for await (const part of await bench.agent.state.logs(request)) parts.push(part);
    return Buffer.concat(parts).toString();
  };
  const refused = async (changes: Partial<LogRequest>) => {
    const { reason, message } = (await t.throwsAsync(read(changes))) as Error & { reason: string };
    return `${reason}: ${message}`;
  };
  const label = 'container "main" in pod "web"';
  t.is(await refused({}), `Unavailable: ${label} has no log`);
  t.is(await refused({ pod: 'none' }), 'NotFound: pod "none" does not exist');
  t.is(await refused({ namespace: 'other' }), 'NotFound: pod "web" does not exist');
  t.is(await refused({ container: 'none' }), 'NotFound: container "none" not found in pod "web"');
  t.is(await refused({ previous: true }), `Invalid: previous terminated ${label} not found`);
  const waits = 'Invalid: container "lost" in pod "web" is waiting to start: ';
  const reason = () => bench.status(pod).containerStatuses?.find(({ name }) => name === 'lost')?.state?.waiting?.reason;
  await bench.until(() => reason() === 'ErrImagePull');
  t.is(await refused({ container: 'lost' }), `${waits}image can't be pulled`);
  await bench.until(() => reason() === 'ImagePullBackOff');
  t.is(await refused({ container: 'lost' }), `${waits}trying and failing to pull image`);

  const write = async (attempt: number, text: string) => {
    const { id } = bench.containers('main').find((container) => container.attempt === attempt)!;
    const path = bench.world.containers.get(id)?.status().logPath ?? '';
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, formatLogLine(new Date(0).toISOString(), 'stdout', false, Buffer.from(text)));
  };
  await write(0, 'one');
  bench.world.exit(bench.containers('main')[0]?.id ?? '', 1);
  await bench.until(() => bench.containers('main').some(({ attempt, state }) => attempt === 1 && state === 'running'));
  await write(1, 'two');
  t.is(await read(), 'two\n');
  t.is(await read({ previous: true }), 'one\n');
});

test('the usage of pods is that of their running containers', async (t) => {
  const bench = await startBench(t, {
    script: () => ({ cpuMillicores: 500, memoryBytes: 7_000_000, writableBytes: 11 }),
  });
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await bench.pass(4000);
  const [found, ...others] = await bench.agent.state.usage();
  const { name, namespace, uid } = pod.metadata ?? {};
  t.deepEqual([found?.name, found?.namespace, found?.uid, others], [name, namespace, uid, []]);
  const [sandbox] = [...bench.world.sandboxes.values()];
  const [container] = [...bench.world.containers.values()];
  t.is(found?.startTimeMs, sandbox?.snapshot.createdAt);
  const startTimeMs = container?.startedAt ?? Number.NaN;
  t.deepEqual(found?.containers, [
    {
      name: 'main',
      startTimeMs,
      timeMs: bench.clock.now(),
      cpuNanoSeconds: (bench.clock.now() - startTimeMs) * 500_000,
      memoryWorkingSetBytes: 7_000_000,
      memoryRssBytes: 7_000_000,
      writableLayer: { usedBytes: 11 },
    },
  ]);
  t.is(typeof bench.agent.state.lastSyncLoopMs(), 'number');
});

test('usage that the runtime does not measure is 0, and containers of unknown pods do not count', async (t) => {
  const pod = { uid: 'u', name: 'web', namespace: 'team', sandboxes: [], containers: [] };
  const stats = (id: string, uid: string | undefined) => ({
    ...{ id, metadata: { name: id, attempt: 0 }, timestamp: 5 },
    labels: uid === undefined ? {} : labels(uid),
  });
  const labels = (uid: string) => ({
    'io.kubernetes.pod.uid': uid,
    'io.kubernetes.pod.name': 'web',
    'io.kubernetes.pod.namespace': 'team',
  });
  const volumes = [{ name: 'v', usedBytes: 1 }];
  const reader = new PodQueryReader({
    states: { all: () => [pod, { ...pod, uid: 'idle' }] },
    runtime: {
      listContainerStats: async () => [stats('a', 'u'), stats('b', 'u'), stats('c', 'gone'), stats('d', undefined)],
    },
    volumesOf: () => volumes,
    callTimeoutMs: 1,
  } as unknown as PodQueryReaderOptions);
  const nothing = { startTimeMs: 0, timeMs: 5, cpuNanoSeconds: 0, memoryWorkingSetBytes: 0 };
  t.deepEqual((await reader.usage()) as unknown, [
    {
      ...{ namespace: 'team', name: 'web', uid: 'u', startTimeMs: 0, volumes },
      containers: [
        { name: 'a', ...nothing },
        { name: 'b', ...nothing },
      ],
    },
  ]);
});
