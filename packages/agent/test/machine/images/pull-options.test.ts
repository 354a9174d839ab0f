import type { FakePull } from '@keelson/runtime-fake';
import test from 'ava';
import { type Bench, startBench, testPod } from '../../support/bench.ts';

const waitingOf = (bench: Bench, pod: ReturnType<typeof testPod>) =>
  bench.status(pod).containerStatuses?.[0]?.state?.waiting ?? {};

const podOf = (image: string) => testPod(image.replace(':', '-'), { containers: [{ name: 'main', image }] });

/** Pulls of this length, and how many there were at the same time. */
function slowPulls(delayMs: number) {
  const seen = { begun: [] as string[] };
  const pull = (reference: string): FakePull => {
    seen.begun.push(reference);
    return { delayMs };
  };
  return { seen, pull };
}

test('--runtime-request-timeout ends a request to the runtime, which is then retried', async (t) => {
  const bench = await startBench(t, { words: ['--runtime-request-timeout=7s', '--registry-qps=0'] });
  bench.world.hang('createContainer');
  const pod = podOf('app:1');
  bench.pods.put(pod);
  await bench.until(() => bench.world.calls.get('createContainer') === 1);
  await bench.pass(6000);
  t.false(bench.events.some(({ message }) => message.includes('7000 ms')));
  await bench.until(
    () => bench.events.some(({ message }) => message.includes('createContainer: no answer within 7000 ms')),
    5000,
  );
  t.is(waitingOf(bench, pod).reason, 'CreateContainerError');
  bench.world.resume('createContainer');
  await bench.until(() => bench.status(pod).phase === 'Running');
});

test('--runtime-request-timeout does not apply to pulls', async (t) => {
  const words = ['--runtime-request-timeout=5s', '--image-pull-progress-deadline=100s'];
  const bench = await startBench(t, { words, pull: slowPulls(60_000).pull });
  const pod = podOf('app:1');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.is(bench.world.calls.get('pullImage'), 1);
});

test('--image-pull-progress-deadline ends a pull without progress for that time', async (t) => {
  const { pull } = slowPulls(40_000);
  const strict = await startBench(t, { words: ['--image-pull-progress-deadline=30s'], pull });
  const pod = podOf('app:1');
  strict.pods.put(pod);
  await strict.until(() => strict.world.calls.get('pullImage') === 1);
  const begunMs = strict.clock.monotonic();
  await strict.until(() => waitingOf(strict, pod).reason === 'ErrImagePull');
  t.true(Math.abs(strict.clock.monotonic() - begunMs - 30_000) <= 1000);
  t.regex(waitingOf(strict, pod).message ?? '', /no progress for 30 s/);
  const patient = await startBench(t, { words: ['--image-pull-progress-deadline=50s'], pull });
  patient.pods.put(pod);
  await patient.until(() => patient.status(pod).phase === 'Running');
});

for (const [word, atOnce] of [
  ['--serialize-image-pulls=true', 1],
  ['--serialize-image-pulls=false', 3],
] as const) {
  test(`${word}: three images are pulled with a concurrency of ${atOnce}`, async (t) => {
    const { seen, pull } = slowPulls(10_000);
    const bench = await startBench(t, { words: [word], pull });
    const pods = ['a:1', 'b:1', 'c:1'].map(podOf);
    bench.pods.put(...pods);
    await bench.until(() => seen.begun.length > 0);
    await bench.pass(5000);
    t.is(seen.begun.length, atOnce);
    await bench.until(() => pods.every((pod) => bench.status(pod).phase === 'Running'));
    const asked = bench.events.flatMap(({ message }) => /^Pulling image "(.*)"$/.exec(message)?.[1] ?? []);
    if (atOnce === 1) t.deepEqual(seen.begun, asked, 'in the order of asking');
  });
}

/** Pods of different images at once: how many were pulled, how many refused, and how many seconds that took. */
async function rush(bench: Bench, count: number) {
  const pods = Array.from({ length: count }, (_, position) => podOf(`app${position}:1`));
  const begunMs = bench.clock.monotonic();
  bench.pods.put(...pods);
  const eventCount = (text: RegExp) =>
    new Set(bench.events.filter(({ message }) => text.test(message)).map(({ pod }) => pod)).size;
  const [pulled, refused] = [() => eventCount(/^Pulling image/), () => eventCount(/pull QPS exceeded\.$/)];
  await bench.until(() => pulled() + refused() === count);
  return { pods, pulled: pulled(), refused: refused(), seconds: Math.ceil((bench.clock.monotonic() - begunMs) / 1000) };
}

test('--registry-qps and --registry-burst: excess pulls fail without waiting, and are retried after a back-off', async (t) => {
  const bench = await startBench(t, {
    words: ['--registry-qps=1', '--registry-burst=2', '--serialize-image-pulls=false'],
  });
  const { pods, pulled, refused, seconds } = await rush(bench, 6);
  t.true(pulled >= 2 && pulled <= 2 + seconds, `${pulled} in ${seconds} s`);
  t.true(refused > 0 && refused === 6 - pulled);
  const late = pods.find((pod) => waitingOf(bench, pod).reason !== undefined);
  await bench.until(() => late && /pull QPS exceeded\.|Back-off/.test(waitingOf(bench, late).message ?? ''));
  await bench.until(() => pods.every((pod) => bench.status(pod).phase === 'Running'), 300_000);
});

test('--registry-burst is the number of pulls that may follow an idle time', async (t) => {
  const bench = await startBench(t, { words: ['--registry-qps=1', '--registry-burst=9'] });
  await bench.pass(30_000);
  const { pulled, seconds } = await rush(bench, 20);
  t.true(pulled >= 9 && pulled <= 9 + seconds, `${pulled} in ${seconds} s`);
});

test('--registry-qps=0 disables the limit, whatever --registry-burst is', async (t) => {
  const bench = await startBench(t, { words: ['--registry-qps=0', '--registry-burst=1'] });
  t.like(await rush(bench, 20), { pulled: 20, refused: 0 });
});
