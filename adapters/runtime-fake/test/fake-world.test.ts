import type { RuntimeEvent } from '@keelson/container-runtime';
import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { behaviours, createFakeRuntime, FakeWorld } from '../src/index.ts';

const pod = (uid: string) => ({ metadata: { name: uid, namespace: 'default', uid, attempt: 0 } });
const container = (name: string, attempt = 0) => ({ metadata: { name, attempt }, image: 'app', command: ['run'] });
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('ten thousand pods are started, listed and ended from outside while the clock stands still', async (t) => {
  const world = new FakeWorld({ clock: new FakeClock(), images: ['app'] });
  const { runtime } = createFakeRuntime(world);
  const begin = performance.now();
  const ids = await Promise.all(
    Array.from({ length: 10_000 }, async (_, index) => {
      const sandboxId = await runtime.runPodSandbox(pod(`pod-${index}`));
      const id = await runtime.createContainer(sandboxId, container('app'));
      await runtime.startContainer(id);
      return id;
    }),
  );
  t.is((await runtime.listContainers({ state: 'running' })).length, 10_000);
  world.exit(ids[5]!, 1);
  t.is((await runtime.containerStatus(ids[5]!)).exitCode, 1);
  t.is((await runtime.listContainers({ state: 'running' })).length, 9_999);
  t.log(`${Math.round(performance.now() - begin)} ms`);
});

test('a scripted exit occurs at its time on the injected clock', async (t) => {
  const clock = new FakeClock();
  const world = new FakeWorld({
    clock,
    images: ['app'],
    script: ({ metadata }) => behaviours.exitAfter(1000 * (metadata.attempt + 1), 7),
  });
  const { runtime } = createFakeRuntime(world);
  const sandboxId = await runtime.runPodSandbox(pod('a'));
  const first = await runtime.createContainer(sandboxId, container('app', 0));
  const second = await runtime.createContainer(sandboxId, container('app', 1));
  await runtime.startContainer(first);
  await runtime.startContainer(second);
  clock.advance(1500);
  await settle();
  t.is((await runtime.containerStatus(first)).exitCode, 7);
  t.is((await runtime.containerStatus(second)).state, 'running');
});

test('slow starts and pulls take their scripted time; failed pulls fail with their code', async (t) => {
  const clock = new FakeClock();
  const pull = (reference: string) =>
    reference.startsWith('bad')
      ? { error: { code: 'PullFailed', message: 'no route' } as const }
      : { delayMs: 5000, sizeBytes: 42 };
  const world = new FakeWorld({ clock, pull, script: () => behaviours.slowStart(3000) });
  const { runtime, images } = createFakeRuntime(world);
  const pulling = images.pullImage('app');
  await settle();
  t.is(await images.imageStatus('app'), undefined);
  clock.advance(5000);
  const image = await pulling;
  await t.throwsAsync(images.pullImage('bad'), { code: 'PullFailed', message: 'no route' } as object);
  const id = await runtime.createContainer(await runtime.runPodSandbox(pod('a')), { ...container('app'), image });
  const starting = runtime.startContainer(id);
  await settle();
  t.is((await runtime.containerStatus(id)).state, 'created');
  clock.advance(3000);
  await starting;
  t.is((await runtime.containerStatus(id)).state, 'running');
});

test('injected failures occur as often as requested; an unreachable runtime fails every call and keeps its state', async (t) => {
  const world = new FakeWorld({ images: ['app'] });
  const { runtime } = createFakeRuntime(world);
  world.failNext('runPodSandbox', 'Internal', 'twice', 2);
  await t.throwsAsync(runtime.runPodSandbox(pod('a')), { message: 'twice' });
  await t.throwsAsync(runtime.runPodSandbox(pod('a')), { message: 'twice' });
  const id = await runtime.runPodSandbox(pod('a'));
  world.unreachable = true;
  await t.throwsAsync(runtime.podSandboxStatus(id), { code: 'Unavailable' } as object);
  world.unreachable = false;
  t.is((await runtime.podSandboxStatus(id)).state, 'ready');
  t.is(world.calls.get('runPodSandbox'), 3);
});

test('a call that hangs ends by its deadline on the injected clock', async (t) => {
  const clock = new FakeClock();
  const world = new FakeWorld({ clock });
  const { runtime } = createFakeRuntime(world);
  world.hang('status');
  const call = runtime.status({ timeoutMs: 2000 });
  clock.advance(2000);
  await t.throwsAsync(call, { code: 'DeadlineExceeded' } as object);
});

test('a broken event stream ends with an error, and the next one begins with resync', async (t) => {
  const world = new FakeWorld();
  const { runtime } = createFakeRuntime(world);
  const read = async () => {
    const events: RuntimeEvent[] = [];
    for await (const event of runtime.events!()) events.push(event);
    return events;
  };
  const reading = read();
  await settle();
  world.breakEvents();
  await t.throwsAsync(reading, { code: 'Unavailable' } as object);
  const stream = runtime.events!()[Symbol.asyncIterator]();
  t.is((await stream.next()).value?.type, 'resync');
});

test('a lost sandbox ends its containers', async (t) => {
  const world = new FakeWorld({ images: ['app'] });
  const { runtime } = createFakeRuntime(world);
  const sandboxId = await runtime.runPodSandbox(pod('a'));
  const id = await runtime.createContainer(sandboxId, container('app'));
  await runtime.startContainer(id);
  world.loseSandbox(sandboxId);
  t.is((await runtime.podSandboxStatus(sandboxId)).state, 'notReady');
  t.is((await runtime.containerStatus(id)).exitCode, 137);
});
