import { join } from 'node:path';
import type { Container, Pod } from '@keelson/kinds';
import test from 'ava';
import { startBench, testPod } from '../../support/bench.ts';

type Start = Parameters<NonNullable<NonNullable<Parameters<typeof startBench>[1]>['script']>>[0];

/** Starts pods under these options; the requests to the runtime are in `starts`, by the name of the pod. */
async function started(t: Parameters<typeof startBench>[0], words: readonly string[], ...pods: Pod[]) {
  const starts = new Map<string, Start>();
  const script = (start: Start) => {
    starts.set(`${start.sandbox.metadata.name}/${start.metadata.name}`, start);
    return {};
  };
  const bench = await startBench(t, { words, script });
  bench.pods.put(...pods);
  return { bench, starts };
}

const main = (extra: Partial<Container>): Partial<Pod['spec']> => ({
  containers: [{ name: 'main', image: 'app:1', imagePullPolicy: 'IfNotPresent', ...extra }],
});

for (const [words, quota] of [
  [[], { cpuPeriodUs: 100_000, cpuQuotaUs: 50_000 }],
  [['--cpu-cfs-quota=false'], {}],
] as const) {
  test(`limits of CPU ${words.length === 0 ? 'become quotas' : 'do not become quotas'} with ${words.join(' ') || 'the default'}`, async (t) => {
    const limited = testPod('limited', main({ resources: { limits: { cpu: '500m', memory: '64Mi' } } }));
    const { bench, starts } = await started(t, words, limited);
    await bench.until(() => bench.status(limited).phase === 'Running');
    const { cpuPeriodUs, cpuQuotaUs, cpuShares, memoryLimitBytes } = starts.get('limited/main')?.config.resources ?? {};
    t.deepEqual(
      { ...(cpuPeriodUs !== undefined && { cpuPeriodUs }), ...(cpuQuotaUs !== undefined && { cpuQuotaUs }) },
      quota,
    );
    t.deepEqual([cpuShares, memoryLimitBytes], [512, 64 * 2 ** 20], 'shares and memory are as asked for');
  });
}

for (const [option, spec, message] of [
  ['--host-network-sources', { hostNetwork: true }, 'pod may not use host network'],
  ['--host-pid-sources', { hostPID: true }, 'pod may not use host PID'],
  ['--host-ipc-sources', { hostIPC: true }, 'pod may not use host IPC'],
] as const) {
  test(`${option}: pods of unlisted sources wait as Forbidden, those of listed sources run`, async (t) => {
    const ofFile = testPod('of-file', spec);
    const ofApi = testPod('of-api', spec, { 'kubernetes.io/config.source': 'api' });
    const plain = testPod('plain', {}, { 'kubernetes.io/config.source': 'api' });
    const { bench, starts } = await started(t, [`${option}=file,http`], ofFile, ofApi, plain);
    await bench.until(() => bench.status(ofFile).phase === 'Running' && bench.status(plain).phase === 'Running');
    await bench.until(() => bench.status(ofApi).reason === 'Forbidden');
    t.like(bench.status(ofApi), { phase: 'Pending', message });
    t.is(bench.status(ofApi).containerStatuses?.[0]?.state?.waiting?.reason, 'Blocked');
    const namespaces = starts.get('of-file/main')?.config.securityContext?.namespaces;
    t.true(Object.values(namespaces ?? {}).includes('node'));
    t.false(starts.has('of-api/main'));
  });

  test(`${option} allows every source when it is not given, and none when it is empty`, async (t) => {
    const free = testPod('free', spec, { 'kubernetes.io/config.source': 'api' });
    const first = await started(t, [], free);
    await first.bench.until(() => first.bench.status(free).phase === 'Running');
    const bound = testPod('bound', spec);
    const second = await started(t, [`${option}=`], bound);
    await second.bench.until(() => second.bench.status(bound).reason === 'Forbidden');
    t.pass();
  });
}

const podAnnotation = 'seccomp.security.alpha.kubernetes.io/pod';
const mainAnnotation = 'container.seccomp.security.alpha.kubernetes.io/main';
const localhost = (localhostProfile: string) => ({ type: 'Localhost', localhostProfile });

for (const [title, spec, annotations, expected] of [
  ['nothing is asked for', {}, {}, undefined],
  ['the container names a file', main({ securityContext: { seccompProfile: localhost('a/b.json') } }), {}, 'a/b.json'],
  ['the pod names a file', { securityContext: { seccompProfile: localhost('p.json') } }, {}, 'p.json'],
  ['an annotation of the pod names a file', {}, { [podAnnotation]: 'localhost/old/p.json' }, 'old/p.json'],
  [
    'an annotation of the container takes precedence over one of the pod',
    {},
    { [podAnnotation]: 'localhost/p.json', [mainAnnotation]: 'localhost/c.json' },
    'c.json',
  ],
  [
    'the annotation of the container takes precedence over the field of the pod',
    { securityContext: { seccompProfile: localhost('p.json') } },
    { [mainAnnotation]: 'unconfined' },
    'unconfined',
  ],
  [
    'the field of the container takes precedence over its annotation',
    main({ securityContext: { seccompProfile: { type: 'RuntimeDefault' } } }),
    { [mainAnnotation]: 'localhost/c.json' },
    'runtimeDefault',
  ],
  ['an annotation asks for the default by its old name', {}, { [podAnnotation]: 'docker/default' }, 'runtimeDefault'],
] as const satisfies readonly (readonly [string, Partial<Pod['spec']>, Record<string, string>, string | undefined])[]) {
  test(`--seccomp-profile-root: ${title}`, async (t) => {
    const pod = testPod('confined', spec, annotations);
    const { bench, starts } = await started(t, ['--seccomp-profile-root=/profiles'], pod);
    await bench.until(() => bench.status(pod).phase === 'Running');
    const found = starts.get('confined/main')?.config.securityContext?.seccomp;
    const isFile = expected?.includes('.json') === true;
    const wanted = isFile
      ? { type: 'localhost', localhostRef: join('/profiles', expected) }
      : expected && { type: expected };
    t.deepEqual(found as unknown, wanted);
  });
}

for (const word of [
  'localhost/../../etc/passwd',
  'localhost//etc/passwd',
  'localhost/',
  'localhost/a/../../b',
  'mine',
]) {
  test(`--seccomp-profile-root: the profile ${word} is rejected`, async (t) => {
    const pod = testPod('bad', {}, { [podAnnotation]: word });
    const { bench, starts } = await started(t, [], pod);
    const waiting = () => bench.status(pod).containerStatuses?.[0]?.state?.waiting;
    await bench.until(() => waiting()?.reason === 'CreateContainerConfigError');
    t.regex(waiting()?.message ?? '', /seccomp profile/);
    t.is(starts.size, 0);
  });
}
