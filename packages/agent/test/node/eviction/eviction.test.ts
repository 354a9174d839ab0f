import type { Pod } from '@keelson/kinds';
import type { FakeBehaviour } from '@keelson/runtime-fake';
import test, { type ExecutionContext } from 'ava';
import { createTextMetrics } from '../../../src/serve/stats/text-metrics.ts';
import { type Bench, type BenchOptions, settle, startBench, testPod } from '../../support/bench.ts';
import { TestNode } from '../../support/test-node.ts';

const mebibyte = 2 ** 20;
const second = 1000;
const minute = 60_000;
/** Nothing happens so often that smaller steps would show more. */
const step = 1000;

/** A pod of one container that requests so much memory; the script below determines its usage. */
function pod(
  name: string,
  request?: string,
  spec: Partial<Pod['spec']> = {},
  annotations: Record<string, string> = {},
): Pod {
  const resources = request === undefined ? {} : { requests: { memory: request } };
  return testPod(
    name,
    { containers: [{ name: 'main', image: 'app:1', imagePullPolicy: 'IfNotPresent', resources }], ...spec },
    annotations,
  );
}

const ofApi = { 'kubernetes.io/config.source': 'api' };

interface Started {
  readonly bench: Bench;
  readonly node: TestNode;
  /** Behaviour of containers, by the name of their pod. */
  readonly behaviours: Map<string, FakeBehaviour>;
  run(...pods: Pod[]): Promise<void>;
  /** Names of the pods that were evicted, in order. */
  evicted(): string[];
  podsWithEvent(reason: string): string[];
}

/** An agent on a machine that a test makes full. Thresholds of its own only, so that one thing happens at a time. */
async function start(
  t: ExecutionContext,
  words: readonly string[],
  more: Partial<BenchOptions> = {},
): Promise<Started> {
  const node = new TestNode();
  const behaviours = new Map<string, FakeBehaviour>();
  const bench = await startBench(t, {
    words: [
      '--enforce-node-allocatable=',
      ...(words.some((word) => word.startsWith('--eviction-hard')) ? [] : ['--eviction-hard=']),
      ...words,
    ],
    nodeUsage: node,
    script: ({ sandbox }) => behaviours.get(sandbox.metadata.name) ?? {},
    ...more,
  });
  const podsWithEvent = (reason: string) =>
    bench.events.filter((event) => event.reason === reason).map((event) => event.pod);
  return {
    bench,
    node,
    behaviours,
    async run(...pods) {
      bench.pods.put(...pods);
      await bench.until(() => pods.every((one) => bench.status(one).phase === 'Running'));
    },
    evicted: () => podsWithEvent('Evicted'),
    podsWithEvent,
  };
}

const hardMemory = '--eviction-hard=memory.available<1Gi';
const softMemory = ['--eviction-soft=memory.available<1Gi', '--eviction-soft-grace-period=memory.available=1m'];
const memory = (mebibytes: number) => ({ memoryBytes: mebibytes * mebibyte });

test('--eviction-hard: from pressure to a failed pod, and recovery after --eviction-pressure-transition-period', async (t) => {
  const metrics = createTextMetrics();
  const { bench, node, behaviours, run, evicted, podsWithEvent } = await start(
    t,
    [hardMemory, '--eviction-pressure-transition-period=2m'],
    { metrics },
  );
  behaviours.set('greedy', memory(600));
  behaviours.set('modest', memory(100));
  const [greedy, modest] = [pod('greedy', '100Mi'), pod('modest', '200Mi')];
  await run(greedy, modest);
  await bench.pass(minute, step);
  t.deepEqual(
    bench.events.filter(({ reason }) => /vict/.test(reason)),
    [],
    'nothing happens while there is enough',
  );

  node.memoryBytes = 900 * mebibyte;
  await bench.until(() => bench.status(greedy).phase === 'Failed', 11 * second);
  const { reason, message, containerStatuses = [] } = bench.status(greedy);
  t.is(reason, 'Evicted');
  t.is(
    message,
    'The node was low on resource: memory. Threshold quantity: 1Gi, available: 900Mi. ' +
      'Container main was using 600Mi, request is 100Mi, has larger consumption of memory.',
  );
  t.is(containerStatuses[0]?.state?.terminated?.exitCode, 137, 'a hard threshold leaves no time to end');
  t.deepEqual(evicted(), ['greedy']);
  t.deepEqual(
    bench.events.find((event) => event.reason === 'EvictionThresholdMet'),
    {
      type: 'Warning',
      reason: 'EvictionThresholdMet',
      message: 'Attempting to reclaim memory',
      pod: 'node-1',
    },
  );
  t.regex(await metrics.text(), /^keelson_agent_evictions_total\{signal="memory.available"\} 1$/m);

  node.memoryBytes = 3000 * mebibyte;
  await bench.pass(30 * second, step);
  t.is(bench.containers().length, 1, 'what was left of the pod is gone');
  t.is(bench.status(greedy).containerStatuses?.[0]?.state?.terminated?.exitCode, 137, 'but not its status');
  t.is(bench.status(modest).phase, 'Running');
  const early = pod('early');
  bench.pods.put(early);
  await bench.until(() => bench.status(early).phase === 'Failed', second);
  await bench.pass(2 * minute, step);
  const late = pod('late');
  await run(late);
  t.deepEqual(podsWithEvent('Evicted'), ['greedy', 'early']);
});

test('one pod is evicted per round, the one furthest above its request first, until the threshold is no longer met', async (t) => {
  const { bench, node, behaviours, run, evicted } = await start(t, [hardMemory]);
  const uses = { a: 300, b: 700, c: 500, d: 900 };
  for (const [name, use] of Object.entries(uses)) behaviours.set(name, memory(use));
  await run(pod('a'), pod('b', '100Mi'), pod('c'), pod('d', '1Gi'));
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => evicted().length === 1, 10 * second);
  await bench.pass(9 * second, step);
  t.deepEqual(evicted(), ['b']);
  await bench.until(() => evicted().length === 3, 21 * second);
  t.deepEqual(evicted(), ['b', 'c', 'a']);
  node.memoryBytes = 2000 * mebibyte;
  await bench.pass(minute, step);
  t.deepEqual(evicted(), ['b', 'c', 'a'], 'who keeps to its request stays');
});

test('the gate PodPriority: of two pods above their requests the one with lower priority is evicted first', async (t) => {
  for (const [gate, first] of [
    ['false', 'important'],
    ['true', 'other'],
  ] as const) {
    const { bench, node, behaviours, run, evicted } = await start(t, [
      hardMemory,
      `--feature-gates=PodPriority=${gate}`,
    ]);
    behaviours.set('important', memory(500));
    await run(pod('important', undefined, { priority: 1000 }), pod('other', undefined, { priority: 10 }));
    node.memoryBytes = 100 * mebibyte;
    await bench.until(() => evicted().length === 1, 11 * second);
    t.deepEqual(evicted(), [first]);
  }
});

test('critical static pods are neither evicted nor rejected, with the gates that define them', async (t) => {
  const gates = '--feature-gates=PodPriority=true,ExperimentalCriticalPodAnnotation=true';
  const { bench, node, run, evicted } = await start(t, [hardMemory, gates]);
  const critical = (name: string) => pod(name, undefined, { priority: 2_000_000_000 });
  const marked = pod('marked', undefined, {}, { 'scheduler.alpha.kubernetes.io/critical-pod': '' });
  const inSystem = { ...marked, metadata: { ...marked.metadata, namespace: 'kube-system' } };
  await run(
    critical('static'),
    inSystem,
    { ...critical('api'), metadata: { ...pod('api', undefined, {}, ofApi).metadata } },
    pod('plain'),
  );
  node.memoryBytes = 100 * mebibyte;
  await bench.pass(minute, step);
  t.deepEqual(evicted().sort(), ['api', 'plain']);
  const next = critical('next');
  await run(next);
  t.pass('it was taken');
});

test('--eviction-soft, --eviction-soft-grace-period: pods are evicted when the threshold was met for its period', async (t) => {
  const { bench, node, run, evicted } = await start(t, softMemory);
  const one = pod('one');
  await run(one);
  node.memoryBytes = 900 * mebibyte;
  await bench.pass(50 * second, step);
  t.deepEqual(evicted(), []);
  const refused = pod('refused');
  bench.pods.put(refused);
  await bench.until(() => bench.status(refused).phase === 'Failed', second);
  t.is(bench.status(refused).message, 'The node had condition: [MemoryPressure].', 'the condition is there before');
  await bench.until(() => bench.status(one).reason === 'Evicted', 30 * second);
});

for (const { words, own, endsWithin, why } of [
  { words: [], own: 40, endsWithin: 0, why: 'none when the option is unset' },
  { words: ['--eviction-max-pod-grace-period=20'], own: 40, endsWithin: 20, why: 'at most the value of the option' },
  { words: ['--eviction-max-pod-grace-period=20'], own: 8, endsWithin: 8, why: 'at most that of the pod' },
  {
    words: ['--eviction-max-pod-grace-period=-1'],
    own: 40,
    endsWithin: 40,
    why: 'that of the pod when the option is negative',
  },
]) {
  test(`--eviction-max-pod-grace-period: the grace period of pods that a soft threshold evicts: ${why}`, async (t) => {
    const { bench, node, behaviours, run, evicted } = await start(t, [...softMemory, ...words]);
    behaviours.set('slow', { ...memory(500), stopAfterMs: 'never' });
    const slow = pod('slow', undefined, { terminationGracePeriodSeconds: own });
    await run(slow, pod('other'));
    node.memoryBytes = 900 * mebibyte;
    await bench.until(() => evicted().length === 1, 2 * minute);
    if (endsWithin > 0) {
      await bench.pass((endsWithin - 1) * second, step);
      t.is(bench.containers()[1]?.state, 'running');
      t.deepEqual(evicted(), ['slow'], 'others have to wait until it is known what that gave');
    }
    await bench.until(() => bench.status(slow).phase === 'Failed', 2 * second);
    node.memoryBytes = 4000 * mebibyte;
    t.deepEqual(evicted(), ['slow']);
  });
}

test('a hard threshold ends the grace period that a soft threshold granted', async (t) => {
  const words = [...softMemory, '--eviction-max-pod-grace-period=-1', '--eviction-hard=memory.available<200Mi'];
  const { bench, node, behaviours, run, evicted } = await start(t, words);
  behaviours.set('slow', { ...memory(500), stopAfterMs: 'never' });
  const slow = pod('slow', undefined, { terminationGracePeriodSeconds: 3600 });
  await run(slow);
  node.memoryBytes = 900 * mebibyte;
  await bench.until(() => evicted().length === 1, 2 * minute);
  await bench.pass(minute, step);
  t.is(bench.status(slow).phase, 'Running');
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => bench.status(slow).phase === 'Failed', 11 * second);
  t.deepEqual(evicted(), ['slow']);
});

test('a pod that does not terminate delays further evictions for half a minute only', async (t) => {
  const { bench, node, behaviours, run, evicted } = await start(t, [hardMemory]);
  behaviours.set('stuck', memory(500));
  await run(pod('stuck'), pod('other'));
  bench.world.failNext('stopContainer', 'Internal', 'stuck', 100);
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => evicted().length === 1, 11 * second);
  await bench.pass(25 * second, step);
  t.deepEqual(evicted(), ['stuck']);
  await bench.until(() => evicted().length === 2, 16 * second);
});

test('--eviction-minimum-reclaim: pods are evicted until that much more is available', async (t) => {
  const { bench, node, run, evicted } = await start(t, [
    hardMemory,
    '--eviction-minimum-reclaim=memory.available=500Mi',
  ]);
  await run(pod('a'), pod('b'), pod('c'));
  node.memoryBytes = 1000 * mebibyte;
  await bench.until(() => evicted().length === 1, 11 * second);
  node.memoryBytes = 1500 * mebibyte;
  await bench.until(() => evicted().length === 2, 11 * second);
  node.memoryBytes = 1600 * mebibyte;
  await bench.pass(minute, step);
  t.is(evicted().length, 2);
});

test('--experimental-kernel-memcg-notification: memory is measured every second, and a met threshold acts at once', async (t) => {
  const { bench, node, run, evicted } = await start(t, [hardMemory, '--experimental-kernel-memcg-notification']);
  await run(pod('a'));
  for (let round = 0; round < 3; round += 1) {
    const before = evicted().length;
    node.memoryBytes = 100 * mebibyte;
    await bench.until(() => evicted().length > before, 1250);
    node.memoryBytes = 4000 * mebibyte;
    await bench.pass(6 * minute, step * 5);
    await run(pod(`next-${round}`));
  }
  t.is(evicted().length, 3);
});

test('without --experimental-kernel-memcg-notification memory is measured every ten seconds, without a threshold never', async (t) => {
  const { bench, node } = await start(t, [hardMemory]);
  const before = node.looksAtMemory;
  await bench.pass(minute, step);
  t.is(node.looksAtMemory - before, 6);
  const idle = await start(t, ['--experimental-kernel-memcg-notification']);
  await idle.bench.pass(minute, step);
  t.is(idle.node.looksAtMemory, 0);
});

test('pods that together exceed the allocatable memory are evicted, however much the machine has left', async (t) => {
  const { bench, behaviours, run, evicted } = await start(t, [
    '--enforce-node-allocatable=pods',
    '--system-reserved=memory=7Gi',
  ]);
  behaviours.set('a', memory(600));
  behaviours.set('b', memory(300));
  const [a, b] = [pod('a'), pod('b')];
  await run(a, b);
  await bench.pass(20 * second, step);
  t.deepEqual(evicted(), []);
  behaviours.set('c', memory(200));
  const c = pod('c');
  await run(c);
  await bench.until(() => evicted().length === 1, 11 * second);
  t.regex(
    bench.status(a).message ?? '',
    /^The node was low on resource: memory\. Threshold quantity: 0, available: -76Mi\./,
  );
});

/** What is there at the start has been there always; images that came just now are spared. */
const withUnused = { images: ['app:1', 'unused:1'] };
const fullDisk = { capacityBytes: 1e11, availableBytes: 5e9, inodes: 1e6, inodesFree: 9e5 };

test('a full disk: ended containers and unused images are removed first, and no pod is evicted if that suffices', async (t) => {
  const { bench, node, behaviours, run, evicted } = await start(
    t,
    ['--eviction-hard=nodefs.available<10%'],
    withUnused,
  );
  behaviours.set('job', { exitAfterMs: 100 });
  const job = pod('job', undefined, { restartPolicy: 'Never' }, ofApi);
  await run(pod('web'));
  bench.pods.put(job);
  await bench.until(() => bench.status(job).phase === 'Succeeded');
  const disk = Object.getOwnPropertyDescriptor(node, 'disk1')?.value;
  // What is deleted makes room.
  const used = () => bench.world.images.size > 1 || bench.containers().length > 1;
  Object.defineProperty(node, 'disk1', { get: () => (used() ? fullDisk : disk) });
  await bench.until(() => !used(), 11 * second);
  await bench.pass(30 * second, step);
  t.deepEqual(evicted(), []);
  t.false(bench.world.images.has('unused:1'));
  t.is(bench.status(job).containerStatuses?.[0]?.state?.terminated?.exitCode, 0, 'the job is remembered');
  t.is(bench.status(job).phase, 'Succeeded');
});

test('a full disk: the pod with the highest usage is evicted with its files, and no pod is accepted until space is free', async (t) => {
  const { bench, node, behaviours, run, evicted } = await start(t, ['--eviction-hard=nodefs.available<10%']);
  behaviours.set('writer', { writableBytes: 2e9 });
  behaviours.set('thrifty', { writableBytes: 3e9 });
  const asks = { name: 'main', image: 'app:1', resources: { requests: { 'ephemeral-storage': '4G' } } };
  await run(pod('quiet', '1Gi'), pod('writer'), pod('thrifty', undefined, { containers: [asks] }));
  node.disk1 = fullDisk;
  await bench.until(() => evicted().length === 1, 11 * second);
  node.disk1 = { ...fullDisk, availableBytes: 5e10 };
  t.deepEqual(evicted(), ['writer']);
  const burstable = pod('burstable', '1Gi');
  bench.pods.put(burstable);
  await bench.until(() => bench.status(burstable).phase === 'Failed', second);
  t.like(bench.status(burstable), { reason: 'Evicted', message: 'The node had condition: [DiskPressure].' });
});

test('under memory pressure only BestEffort pods are rejected', async (t) => {
  const { bench, node, run } = await start(t, [hardMemory]);
  node.memoryBytes = 100 * mebibyte;
  await bench.pass(10 * second, step);
  const best = pod('best');
  bench.pods.put(best);
  await run(pod('asks', '100Mi'));
  t.like(bench.status(best), { phase: 'Failed', reason: 'Evicted' });
});

for (const { words, resource, full, images } of [
  { words: 'nodefs.inodesFree<10%', resource: 'nodefsInodes', full: { inodesFree: 50_000 }, images: 9e5 },
  { words: 'imagefs.inodesFree<1000', resource: 'imagefsInodes', full: {}, images: 999 },
  { words: 'imagefs.available<95G', resource: 'imagefs', full: {}, images: 9e5 },
]) {
  test(`--eviction-hard=${words} reports a shortage of ${resource}`, async (t) => {
    const { bench, node, run } = await start(t, [`--eviction-hard=${words}`]);
    const one = testPod('one', { containers: [{ name: 'main', image: 'big:1', imagePullPolicy: 'IfNotPresent' }] });
    bench.world.addImage('big:1', { sizeBytes: 4e9 });
    await run(one);
    await bench.pass(20 * second, step);
    t.is(bench.status(one).phase, 'Running');
    Object.assign(node.disk1, full);
    node.imageInodesFree = images;
    if (resource === 'imagefs') bench.world.addImage('big:1', { sizeBytes: 6e9 });
    await bench.until(() => bench.status(one).phase === 'Failed', 11 * second);
    t.true(bench.status(one).message?.startsWith(`The node was low on resource: ${resource}. Threshold quantity: `));
  });
}

test('with a separate image disk only files on the full disk are removed', async (t) => {
  for (const [words, gone] of [
    ['nodefs.available<10%', 'container'],
    ['imagefs.inodesFree<1000', 'image'],
  ] as const) {
    const { bench, node, behaviours } = await start(t, [`--eviction-hard=${words}`], withUnused);
    node.ownImagefs = true;
    behaviours.set('job', { exitAfterMs: 100 });
    const job = pod('job', undefined, { restartPolicy: 'Never' }, ofApi);
    bench.pods.put(job);
    await bench.until(() => bench.status(job).phase === 'Succeeded');
    node.disk1 = fullDisk;
    node.imageInodesFree = 999;
    await bench.pass(15 * second, step);
    t.is(bench.containers().length, gone === 'container' ? 0 : 1);
    t.is(bench.world.images.has('unused:1'), gone !== 'image');
  }
});

test('memory pressure is handled before disk pressure', async (t) => {
  const { bench, node, run, podsWithEvent } = await start(
    t,
    ['--eviction-hard=nodefs.available<10%,memory.available<1Gi'],
    withUnused,
  );
  await run(pod('a'));
  node.disk1 = fullDisk;
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => podsWithEvent('EvictionThresholdMet').length === 1, 11 * second);
  await settle();
  t.regex(bench.events.find(({ reason }) => reason === 'EvictionThresholdMet')?.message ?? '', /memory$/);
  t.true(bench.world.images.has('unused:1'));
});

test('a runtime without usage information hides no other shortage, and delays no start', async (t) => {
  const { bench, node, run, evicted } = await start(t, ['--eviction-hard=imagefs.available<10%,memory.available<1Gi']);
  bench.world.failNext('imageFsInfo', 'Unavailable', 'away', 1000);
  const begun = bench.clock.monotonic();
  await run(pod('a'));
  t.true(bench.clock.monotonic() - begun < 5 * second);
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => evicted().length === 1, 11 * second);
  t.true((bench.world.calls.get('imageFsInfo') ?? 0) > 0);
});

test('an evicted pod stays evicted after a restart of the agent', async (t) => {
  const { bench, node, run } = await start(t, [hardMemory]);
  const one = pod('one', undefined, {}, ofApi);
  await run(one);
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => bench.status(one).phase === 'Failed', 11 * second);
  await bench.pass(second);
  const status = bench.status(one);
  await bench.agent.stop();
  bench.pods.remove(one);
  bench.pods.put({ ...one, status });
  node.memoryBytes = 4000 * mebibyte;
  await bench.again();
  await bench.pass(minute, step);
  t.deepEqual(bench.containers(), []);
  t.like(bench.status(one), { phase: 'Failed', reason: 'Evicted' });
  t.truthy(bench.status(one).containerStatuses?.[0]?.state?.terminated);
});

test('a manifest that is edited after its pod was evicted results in a new pod', async (t) => {
  const { bench, node, run } = await start(t, [hardMemory, '--eviction-pressure-transition-period=0']);
  const one = pod('web');
  await run(one);
  node.memoryBytes = 100 * mebibyte;
  await bench.until(() => bench.status(one).phase === 'Failed', 11 * second);
  node.memoryBytes = 4000 * mebibyte;
  await bench.pass(20 * second, step);
  bench.pods.remove(one);
  await run(pod('web'));
  t.deepEqual(
    bench.containers('main').map(({ state }) => state),
    ['running'],
  );
});
