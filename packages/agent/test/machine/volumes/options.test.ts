import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { coreV1, Pod } from '@keelson/kinds';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { uidOf } from '../../../src/base/pod/pod-spec.ts';
import { type RunProgram, runProgram } from '../../../src/base/run-program.ts';
import { localHost } from '../../../src/machine/host/host-access.ts';
import type { Mounter, MountRequest } from '../../../src/machine/volumes/mounter.ts';
import { type Bench, startBench, testPod } from '../../support/bench.ts';

const step = 5_000;
const withVolumes = (name: string, ...volumes: coreV1.Volume[]) => testPod(name, { volumes });
const share = { name: 'share', nfs: { server: 'files.test', path: '/export/a', readOnly: true } };
const failure = (bench: Bench, pod: Pod) =>
  bench.events.find((event) => event.reason === 'FailedMount' && event.pod === pod.metadata?.name)?.message;

/** Notes mounts in place of making them. */
function notingMounter(): Mounter & { readonly mounts: MountRequest[] } {
  const mounts: MountRequest[] = [];
  return {
    mounts,
    mount: async (request) => void mounts.push(request),
    bind: async () => {},
    isMounted: async (path) => mounts.some(({ target }) => target === path),
    unmountBelow: async () => {},
  };
}

/** This machine, but with or without the helper for NFS. */
const machineWith = (helper: boolean) => ({
  ...localHost,
  files: {
    ...localHost.files,
    info: async (path: string, links: 'follow' | 'show') => {
      if (!/\/mount\.nfs$/.test(path)) return localHost.files.info(path, links);
      return helper && path.startsWith('/usr/sbin/') ? ({ type: 'file', mode: 0o755, gid: 0 } as const) : undefined;
    },
  },
});

test('--experimental-mounter-path: the program is called instead of mount, with the same arguments', async (t) => {
  const directory = await temporaryDirectory(t);
  const mounter = join(directory, 'mounter');
  await writeFile(mounter, `#!/bin/sh\nfor word in "$@"; do echo "$word"; done > ${directory}/words\n`);
  await chmod(mounter, 0o755);
  const bench = await startBench(t, { words: [`--experimental-mounter-path=${mounter}`], mounter: 'options' });
  const pod = withVolumes('p', share);
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const target = join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes/kubernetes.io~nfs/share');
  t.is(await readFile(join(directory, 'words'), 'utf8'), `-t\nnfs\n-o\nro\nfiles.test:/export/a\n${target}\n`);
  await writeFile(mounter, '#!/bin/sh\necho no route to files.test >&2\nexit 32\n');
  const next = withVolumes('next', share);
  bench.pods.put(next);
  await bench.until(() => failure(bench, next));
  t.is(failure(bench, next), `MountVolume failed: volume "share": ${mounter}: no route to files.test`);
});

const check = '--experimental-check-node-capabilities-before-mount';

for (const [title, words, helper, fails] of [
  [`${check}: without the helper nothing is mounted, and an event says what is missing`, [check], false, true],
  [`${check}: with the helper it is mounted`, [check], true, false],
  [`${check} has no effect with --experimental-mounter-path`, [check, '--experimental-mounter-path=/m'], false, false],
  [`without ${check} mounting is just tried`, [], false, false],
] as const) {
  test(title, async (t) => {
    const mounter = notingMounter();
    const bench = await startBench(t, { words, mounter, host: machineWith(helper) });
    const pod = withVolumes('p', share);
    const plain = withVolumes('plain', { name: 'tmp', emptyDir: {} });
    bench.pods.put(pod, plain);
    await bench.until(() => bench.status(plain).phase === 'Running');
    await bench.until(() => (fails ? failure(bench, pod) : bench.status(pod).phase === 'Running'));
    if (fails)
      t.regex(
        failure(bench, pod) ?? '',
        /^MountVolume failed: volume "share": the node lacks mount\.nfs.*required components/,
      );
    t.deepEqual(
      mounter.mounts.map(({ type, source, options }) => [type, source, ...options]),
      fails ? [] : [['nfs', 'files.test:/export/a', 'ro']],
    );
  });
}

test('--containerized: volume files and mounts are created and removed on the host through nsenter', async (t) => {
  const calls: string[] = [];
  // Does on this machine what would be done on the host.
  const run: RunProgram = (program, words, input) => {
    const [namespace = '', dash = '', inner = '', ...rest] = words;
    calls.push(`${program} ${namespace} ${dash} ${inner}`);
    return runProgram(inner, rest, input);
  };
  const directory = await temporaryDirectory(t);
  const bench = await startBench(t, { words: ['--containerized'], mounter: 'options', runProgram: run });
  const made = join(directory, 'made');
  const pod = withVolumes(
    'p',
    { name: 'tmp', emptyDir: {} },
    { name: 'host', hostPath: { path: made, type: 'DirectoryOrCreate' } },
    { name: 'facts', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
  );
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const volumes = join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes');
  t.is(await readFile(join(volumes, 'kubernetes.io~downward-api/facts/name'), 'utf8'), 'p');
  t.deepEqual(
    calls.filter((call) => !/^nsenter --mount=(\/rootfs)?\/proc\/1\/ns\/mnt -- [a-z]+$/.test(call)),
    [],
  );
  const programs = new Set(calls.map((call) => call.split(' ').at(-1)));
  t.true(
    ['sh', 'stat', 'chmod', 'ln', 'mv', 'find', 'readlink'].every((name) => programs.has(name)),
    [...programs].join(' '),
  );
  calls.length = 0;
  bench.pods.remove(pod);
  await bench.until(() => calls.some((call) => call.endsWith(' rm')));
  t.true(
    calls.some((call) => call.endsWith(' cat')),
    'mounts are looked up on the host',
  );
});

test('without --containerized no program is called for plain volumes', async (t) => {
  const calls: string[] = [];
  const run: RunProgram = (program, words, input) => {
    calls.push(program);
    return runProgram(program, words, input);
  };
  const bench = await startBench(t, { words: [], mounter: 'options', runProgram: run });
  const pod = withVolumes('p', { name: 'tmp', emptyDir: {} });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.deepEqual(calls, []);
});

test('--volume-stats-agg-period: the usage of volumes is measured at once and then each period', async (t) => {
  const bench = await startBench(t, { words: ['--volume-stats-agg-period=5m'], script: () => ({ memoryBytes: 1 }) });
  const directory = await temporaryDirectory(t);
  const pod = withVolumes('p', { name: 'tmp', emptyDir: {} }, { name: 'host', hostPath: { path: directory } });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const usage = async () => (await bench.agent.state.usage())[0]?.volumes;
  t.is(await usage(), undefined);
  await bench.pass(1000);
  const inodes = async () => (await usage())?.map(({ name, inodesUsed }) => `${name} ${inodesUsed}`);
  t.deepEqual(await inodes(), ['tmp 1'], 'files of the machine are not the usage of the pod');
  const place = join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes/kubernetes.io~empty-dir/tmp');
  await mkdir(join(place, 'd'));
  await writeFile(join(place, 'd/f'), Buffer.alloc(100_000, 1));
  await bench.pass(4 * 60_000, step);
  t.deepEqual(await inodes(), ['tmp 1'], 'not inspected again before its time');
  await bench.pass(60_000, step);
  t.deepEqual(await inodes(), ['tmp 3']);
  const [found] = (await usage()) ?? [];
  t.true(found !== undefined && found.usedBytes >= 100_000 && found.usedBytes < 150_000, String(found?.usedBytes));
  t.true(found !== undefined && found.capacityBytes >= found.availableBytes);
  bench.pods.remove(pod);
  await bench.until(() => bench.world.sandboxes.size === 0);
});

test('--volume-stats-agg-period: measurements of many nodes are spread, by half a period at most', async (t) => {
  const bench = await startBench(t, { words: ['--volume-stats-agg-period=4m'], random: () => 1 });
  const pod = withVolumes('p', { name: 'tmp', emptyDir: {} });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const timeOf = async () => (await bench.agent.state.usage())[0]?.volumes?.[0]?.timeMs;
  await bench.pass(4 * 60_000, step);
  const first = await timeOf();
  await bench.pass(6 * 60_000, step);
  t.is(((await timeOf()) ?? 0) - (first ?? 0), 6 * 60_000);
});

test('--volume-stats-agg-period=0: no volume is measured', async (t) => {
  const bench = await startBench(t, { words: ['--volume-stats-agg-period=0'] });
  const pod = withVolumes('p', { name: 'tmp', emptyDir: {} });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await bench.pass(10 * 60_000, step);
  t.is((await bench.agent.state.usage())[0]?.volumes, undefined);
});
