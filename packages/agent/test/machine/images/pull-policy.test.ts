import test from 'ava';
import { type Bench, startBench, testPod } from '../../support/bench.ts';

const present = 'here:1';
const absent = 'there:1';

const cases: [policy: 'Always' | 'IfNotPresent' | 'Never', image: string, pulls: number, reasons: string[]][] = [
  ['Always', present, 1, ['Pulling', 'Pulled', 'Created', 'Started']],
  ['Always', absent, 1, ['Pulling', 'Pulled', 'Created', 'Started']],
  ['IfNotPresent', present, 0, ['Pulled', 'Created', 'Started']],
  ['IfNotPresent', absent, 1, ['Pulling', 'Pulled', 'Created', 'Started']],
  ['Never', present, 0, ['Pulled', 'Created', 'Started']],
];

const podOf = (image: string, imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never') =>
  testPod('pod', { containers: [{ name: 'main', image, imagePullPolicy }] });

const waitingOf = (bench: Bench, pod: ReturnType<typeof testPod>) =>
  bench.status(pod).containerStatuses?.[0]?.state?.waiting ?? {};

for (const [policy, image, pulls, reasons] of cases) {
  test(`${policy} with an image that is ${image === present ? 'there' : 'not there'}: ${pulls} pulls`, async (t) => {
    const bench = await startBench(t, { images: [present] });
    const pod = podOf(image, policy);
    bench.pods.put(pod);
    await bench.until(() => bench.status(pod).phase === 'Running');
    t.is(bench.world.calls.get('pullImage') ?? 0, pulls);
    t.deepEqual(
      bench.events.map(({ reason }) => reason),
      reasons,
    );
  });
}

test('with policy Never a missing image is ErrImageNeverPull, until it is present', async (t) => {
  const bench = await startBench(t);
  const pod = podOf(absent, 'Never');
  bench.pods.put(pod);
  await bench.until(() => waitingOf(bench, pod).reason === 'ErrImageNeverPull');
  t.like(
    bench.events.find(({ reason }) => reason === 'ErrImageNeverPull'),
    { type: 'Warning', message: `Container image "${absent}" is not present with pull policy of Never` },
  );
  bench.world.addImage(absent, {});
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.is(bench.world.calls.get('pullImage') ?? 0, 0);
});

for (const name of ['UPPER', 'with space', 'a:b:c', '-dash', 'host/', 'tab\there', `x@sha256:short`]) {
  test(`"${name}" is InvalidImageName, and is not pulled`, async (t) => {
    const bench = await startBench(t);
    const pod = podOf(name, 'IfNotPresent');
    bench.pods.put(pod);
    await bench.until(() => waitingOf(bench, pod).reason === 'InvalidImageName');
    t.true(
      bench.events.some(
        ({ type, reason, message }) => type === 'Warning' && reason === 'InspectFailed' && message !== '',
      ),
    );
    t.true(bench.events.some(({ reason, message }) => reason === 'Failed' && message === 'Error: InvalidImageName'));
    await bench.pass(60_000);
    t.is(bench.world.calls.get('pullImage') ?? 0, 0);
  });
}

test('a failed pull is ErrImagePull, then ImagePullBackOff during the back-off, with an event for each', async (t) => {
  const bench = await startBench(t, { pull: () => ({ error: { code: 'PullFailed', message: 'no route' } }) });
  const pod = podOf(absent, 'IfNotPresent');
  bench.pods.put(pod);
  const shown: string[] = [];
  const hasShownAll = () => {
    const { reason = '' } = waitingOf(bench, pod);
    if (reason !== '' && reason !== 'ContainerCreating' && shown.at(-1) !== reason) shown.push(reason);
    return shown.length === 6;
  };
  await bench.until(hasShownAll);
  t.deepEqual(shown, [
    'ErrImagePull',
    'ImagePullBackOff',
    'ErrImagePull',
    'ImagePullBackOff',
    'ErrImagePull',
    'ImagePullBackOff',
  ]);
  const count = (reason: string, text: RegExp) =>
    bench.events.filter((event) => event.reason === reason && text.test(event.message)).length;
  t.is(count('Failed', /^Failed to pull image "there:1": no route$/), 3);
  t.true(count('Failed', /^Error: ErrImagePull$/) >= 3);
  t.true(count('BackOff', /^Back-off pulling image "there:1"$/) >= 3);
  t.is(bench.world.calls.get('pullImage'), 3);
});
