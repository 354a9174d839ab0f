import { FakeClock, silentLogger } from '@keelson/core/runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import test from 'ava';
import { ImageGarbage, usagePercent } from '../../../src/node/garbage/image-garbage.ts';
import { startBench, testPod } from '../../support/bench.ts';

const gigabyte = 1_000_000_000;
const minute = 60_000;
const step = 5_000;
const tags = (world: FakeWorld) => [...world.images.keys()].sort();
const put = (world: FakeWorld, name: string, sizeGb: number) => world.addImage(name, { sizeBytes: sizeGb * gigabyte });

test('--image-gc-high-threshold, --image-gc-low-threshold: the least recently used images are removed until usage is low', async (t) => {
  const bench = await startBench(t, { words: ['--image-gc-high-threshold=50', '--image-gc-low-threshold=30'] });
  // The disk of the fake world has 100 GB.
  put(bench.world, 'used:1', 10);
  const pod = testPod('p', { containers: [{ name: 'main', image: 'used:1', imagePullPolicy: 'IfNotPresent' }] });
  const job = testPod('job', { containers: [{ name: 'main', image: 'late:1', imagePullPolicy: 'IfNotPresent' }] });
  put(bench.world, 'late:1', 10);
  bench.pods.put(pod, job);
  await bench.until(() => bench.status(job).phase === 'Running');
  put(bench.world, 'early:1', 10);
  put(bench.world, 'early:2', 10);
  await bench.pass(6 * minute, step);
  t.deepEqual(tags(bench.world), ['early:1', 'early:2', 'late:1', 'used:1'], 'at 40 % nothing happens');
  bench.pods.remove(job);
  await bench.until(() => bench.containers().length === 1);
  put(bench.world, 'more:1', 10);
  await bench.pass(10 * minute, step);
  t.deepEqual(
    tags(bench.world),
    ['late:1', 'more:1', 'used:1'],
    'at 50 % those that were never used and came first go, down to 30 %',
  );
  t.false(bench.events.some(({ reason }) => /GC|Disk/.test(reason)));
});

test('--pod-infra-container-image: the sandbox image is never collected, whichever form its name has', async (t) => {
  const bench = await startBench(t, {
    words: [
      '--image-gc-high-threshold=1',
      '--image-gc-low-threshold=0',
      '--pod-infra-container-image=test.local/pause',
    ],
    images: ['test.local/pause:latest', 'old:1'],
  });
  put(bench.world, 'more:1', 20);
  await bench.pass(11 * minute, step);
  t.deepEqual(tags(bench.world), ['test.local/pause:latest']);
});

test('--minimum-image-ttl-duration: recently pulled images are kept; images from before the start are old', async (t) => {
  const bench = await startBench(t, {
    words: ['--image-gc-high-threshold=20', '--image-gc-low-threshold=10', '--minimum-image-ttl-duration=8m'],
    images: ['old:1'],
  });
  put(bench.world, 'new:1', 30);
  await bench.pass(5 * minute + 1000, step);
  t.deepEqual(
    tags(bench.world),
    ['new:1'],
    'the second pass observes it for the first time, and the old one is removed',
  );
  await bench.pass(5 * minute, step);
  t.deepEqual(tags(bench.world), ['new:1']);
  await bench.pass(5 * minute, step);
  t.deepEqual(tags(bench.world), [], 'ten minutes after it was seen');
});

test('a disk that remains full is reported: FreeDiskSpaceFailed at once, ImageGCFailed when it repeats', async (t) => {
  const bench = await startBench(t, { words: ['--image-gc-high-threshold=50', '--image-gc-low-threshold=40'] });
  put(bench.world, 'used:1', 60);
  bench.pods.put(testPod('p', { containers: [{ name: 'main', image: 'used:1', imagePullPolicy: 'IfNotPresent' }] }));
  await bench.until(() => bench.containers().length === 1);
  await bench.pass(5 * minute, step);
  const reported = () => bench.events.filter(({ reason }) => /GC|Disk/.test(reason));
  t.deepEqual(
    reported().map(({ reason, type, pod, message }) => [reason, type, pod, message]),
    [
      [
        'FreeDiskSpaceFailed',
        'Warning',
        'node-1',
        'failed to garbage collect required amount of images. Wanted to free 20000000000 bytes, but freed 0 bytes',
      ],
    ],
  );
  await bench.pass(5 * minute, step);
  t.deepEqual(
    reported().map(({ reason }) => reason),
    ['FreeDiskSpaceFailed', 'FreeDiskSpaceFailed', 'ImageGCFailed'],
  );
  t.deepEqual(tags(bench.world), ['used:1']);
});

function collector(world: FakeWorld, clock: FakeClock, capacityBytes?: number) {
  const reported: string[] = [];
  const { runtime, images } = createFakeRuntime(world);
  const garbage = new ImageGarbage({
    runtime,
    images: {
      listImages: (...words) => images.listImages(...words),
      imageStatus: (...words) => images.imageStatus(...words),
      pullImage: (...words) => images.pullImage(...words),
      removeImage: (...words) => images.removeImage(...words),
      imageFsInfo: async (...words) =>
        (await images.imageFsInfo(...words)).map((disk) =>
          capacityBytes === undefined ? disk : { ...disk, capacityBytes },
        ),
    },
    config: {
      infraImage: 'pause:1',
      pullProgressDeadlineMs: 1,
      serializePulls: true,
      registryQps: 0,
      registryBurst: 1,
      gcHighPercent: 50,
      gcLowPercent: 10,
      minimumTtlMs: 0,
    },
    clock,
    logger: silentLogger,
    events: { record: (_, type, reason) => reported.push(`${type} ${reason}`) },
    node: { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'n' },
    callTimeoutMs: 1000,
  });
  return { garbage, reported };
}

const { signal } = new AbortController();

test('a disk without a capacity is reported as InvalidDiskCapacity', async (t) => {
  const clock = new FakeClock();
  const { garbage, reported } = collector(new FakeWorld({ clock }), clock, 0);
  for (let i = 0; i < 3; i += 1) await garbage.round(signal);
  t.deepEqual(reported, ['Warning InvalidDiskCapacity', 'Warning InvalidDiskCapacity', 'Warning ImageGCFailed']);
});

test('pinned and sandbox images are kept, and an image that cannot be deleted does not block others', async (t) => {
  const clock = new FakeClock();
  const world = new FakeWorld({ clock });
  const pinned = put(world, 'pinned:1', 20);
  world.images.set('pinned:1', { ...pinned, pinned: true });
  put(world, 'pause:1', 20);
  put(world, 'a:1', 10);
  put(world, 'b:1', 10);
  const { garbage, reported } = collector(world, clock);
  await garbage.round(signal);
  t.is(world.images.size, 4, 'the first round only learns');
  world.failNext('removeImage', 'Internal');
  await garbage.round(signal);
  t.deepEqual(tags(world), ['a:1', 'pause:1', 'pinned:1']);
  t.deepEqual(reported, ['Warning FreeDiskSpaceFailed']);
});

test('a single failed request to the runtime causes no event', async (t) => {
  const clock = new FakeClock();
  const world = new FakeWorld({ clock });
  const { garbage, reported } = collector(world, clock);
  await garbage.round(signal);
  world.failNext('listImages', 'Unavailable');
  await garbage.round(signal);
  await garbage.round(signal);
  t.deepEqual(reported, []);
});

test('the usage percentage is an integer, and reserved blocks count as used', (t) => {
  for (const [capacityBytes, availableBytes, percent] of [
    [100, 100, 0],
    [100, 29, 71],
    [1000, 149, 86],
    [1000, 150, 85],
    [100, 0, 100],
    [100, 200, 0],
    [2 ** 52, 2 ** 51, 50],
  ] as const) {
    t.is(usagePercent({ capacityBytes, availableBytes }), percent, `${availableBytes} of ${capacityBytes}`);
  }
});
