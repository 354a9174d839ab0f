import { PassThrough } from 'node:stream';
import type { RuntimeStreaming } from '@keelson/container-runtime';
import type { Pod } from '@keelson/kinds';
import test from 'ava';
import { startBench, testPod } from '../support/bench.ts';

const request = { command: ['ls'], stdin: false, stdout: true, stderr: false, tty: false };

function recorded() {
  const calls: unknown[][] = [];
  const streams = { ended: Promise.resolve({ exitCode: 0 }), close: () => {} };
  const streaming: RuntimeStreaming = {
    exec: async (...words) => {
      calls.push(['exec', ...words]);
      return streams;
    },
    attach: async (...words) => {
      calls.push(['attach', ...words]);
      return streams;
    },
    portForward: async (...words) => {
      calls.push(['portForward', ...words]);
      return new PassThrough();
    },
  };
  return { calls, streaming };
}

test('streams are connected to the newest running instance of a container, and to the pod', async (t) => {
  const { calls, streaming } = recorded();
  const bench = await startBench(t, {
    streaming,
    script: () => ({
      exec: ({ command }) => ({ stdout: Buffer.from(command.join(' ')), stderr: Buffer.from('!'), exitCode: 3 }),
    }),
  });
  const pod = testPod('web');
  bench.pods.put(pod);
  await bench.until(() => bench.containers('main')[0]?.state === 'running');
  bench.world.containers.get(bench.containers('main')[0]!.id)!.exit(1);
  await bench.until(() => bench.containers('main').some(({ state, attempt }) => attempt === 1 && state === 'running'));
  const { streams } = bench.agent;
  const address = { namespace: 'default', pod: 'web', uid: undefined, container: 'main' };
  const id = bench.containers('main').find(({ attempt }) => attempt === 1)!.id;
  await streams.exec(address, request)();
  const { command: _, ...ends } = request;
  await streams.attach(address, ends)();
  await streams.portForward(address)(80);
  const [sandbox] = [...bench.world.sandboxes.keys()];
  t.deepEqual(
    calls.map((call) => call.slice(0, 3)),
    [
      ['exec', id, request],
      ['attach', id, ends],
      ['portForward', sandbox, 80],
    ],
  );
  const result = await streams.run(address, ['echo', 'hi'], new AbortController().signal);
  t.deepEqual([String(result.stdout), String(result.stderr), result.exitCode], ['echo hi', '!', 3]);
});

test('a static pod is found by its own UID and by that of its mirror pod', async (t) => {
  const { streaming } = recorded();
  const bench = await startBench(t, { streaming });
  const pod = testPod('web-node-1');
  const mirror: Pod = {
    ...pod,
    metadata: {
      ...pod.metadata,
      uid: 'api-uid',
      annotations: { 'kubernetes.io/config.source': 'api', 'kubernetes.io/config.mirror': pod.metadata!.uid! },
    },
  };
  bench.pods.put(pod, mirror);
  await bench.until(() => bench.containers('main')[0]?.state === 'running');
  const { streams } = bench.agent;
  const address = { namespace: 'default', pod: 'web-node-1', container: 'main' };
  for (const uid of [undefined, pod.metadata!.uid!, 'api-uid'])
    t.notThrows(() => streams.exec({ ...address, uid }, request));
  t.throws(() => streams.exec({ ...address, uid: 'another' }, request), { message: 'pod "web-node-1" does not exist' });
});

test('a missing or ended container, or an unsupported stream, is an error before the stream starts', async (t) => {
  const bench = await startBench(t, { script: () => ({ exitAfterMs: 1000 }) });
  const pod = testPod('web', { restartPolicy: 'Never' });
  bench.pods.put(pod);
  await bench.until(() => bench.containers('main')[0]?.state === 'running');
  const { streams } = bench.agent;
  const address = { namespace: 'default', pod: 'web', uid: undefined, container: 'main' };
  t.throws(() => streams.exec(address, request), { message: 'the container runtime fake does not support exec' });
  t.throws(() => streams.attach(address, request), { message: 'the container runtime fake does not support attach' });
  t.throws(() => streams.portForward(address), { message: 'the container runtime fake does not support portForward' });
  for (const [changes, message] of [
    [{ pod: 'nope' }, 'pod "nope" does not exist'],
    [{ namespace: 'other' }, 'pod "web" does not exist'],
    [{ container: 'nope' }, 'container "nope" not found in pod "web"'],
  ] as const)
    t.like(
      t.throws(() => streams.exec({ ...address, ...changes }, request)),
      { reason: 'NotFound', message },
    );
  await bench.until(() => bench.status(pod).phase === 'Succeeded');
  t.like(
    t.throws(() => streams.exec(address, request)),
    { reason: 'Invalid', message: 'container "main" in pod "web" is not running' },
  );
  await bench.until(() => [...bench.world.sandboxes.values()].every(({ ready }) => !ready));
  t.like(
    t.throws(() => streams.portForward(address)),
    { reason: 'Invalid' },
  );
});
