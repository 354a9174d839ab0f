import { access, mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '@keelson/kinds';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { uidOf } from '../../../src/base/pod/pod-spec.ts';
import type { MountRequest } from '../../../src/machine/volumes/mounter.ts';
import { startBench, testPod } from '../../support/bench.ts';
import { attachingAnswers, mountingAnswers, shellDriver } from '../../support/flex-driver.ts';

const asRoot = process.getuid?.() === 0 || process.env['CI'] ? test : test.skip;

const flexPod = (name: string, extra: object = {}, spec: Partial<Pod['spec']> = {}) =>
  testPod(name, { volumes: [{ name: 'data', flexVolume: { driver: 'acme/shell', ...extra } }], ...spec });

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

test('--volume-plugin-dir: a driver is initialised once, mounts with its options, and unmounts before files are removed', async (t) => {
  const { directory, calls } = await shellDriver(await temporaryDirectory(t), 'acme/shell', mountingAnswers);
  const bench = await startBench(t, { words: [`--volume-plugin-dir=${directory}`] });
  const pod = flexPod('p', {
    fsType: 'ext4',
    readOnly: true,
    options: { size: '3', 'kubernetes.io/pod.name': 'forged' },
  });
  const other = flexPod('q');
  bench.pods.put(pod, other);
  await bench.until(() => [pod, other].every((one) => bench.status(one).phase === 'Running'));
  const place = join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes/acme~shell/data');
  t.deepEqual(JSON.parse(await readFile(join(place, 'options'), 'utf8')), {
    size: '3',
    'kubernetes.io/fsType': 'ext4',
    'kubernetes.io/readwrite': 'ro',
    'kubernetes.io/pvOrVolumeName': 'data',
    'kubernetes.io/pod.name': 'p',
    'kubernetes.io/pod.namespace': 'default',
    'kubernetes.io/pod.uid': uidOf(pod),
    'kubernetes.io/serviceAccount.name': '',
  });
  // Another agent finds it mounted, and another sync does not mount it again.
  await bench.agent.stop();
  await bench.again();
  await bench.pass(100_000);
  bench.pods.remove(pod);
  await bench.until(() => bench.containers().length === 1);
  await bench.pass(3_000);
  t.false(await isThere(join(bench.rootDir, 'agent/pods', uidOf(pod))));
  const at = (one: Pod) => `pods/${uidOf(one)}/volumes/acme~shell/data`;
  t.deepEqual(
    (await calls()).sort(),
    ['init', 'init', `mount ${at(pod)} {}`, `mount ${at(other)} {}`, `unmount ${at(pod)}`].sort(),
  );
});

test('--volume-plugin-dir: added, replaced and removed drivers are detected at once', async (t) => {
  const directory = await temporaryDirectory(t);
  const bench = await startBench(t, { words: [`--volume-plugin-dir=${directory}`] });
  const first = flexPod('first');
  bench.pods.put(first);
  const failures = (name: string) =>
    bench.events.filter((event) => event.reason === 'FailedMount' && event.pod === name);
  await bench.until(() => failures('first').length > 0);
  t.regex(
    failures('first')[0]?.message ?? '',
    /volume "data": no volume plugin matched: there is no driver acme\/shell/,
  );
  const driver = await shellDriver(directory, 'acme/shell', mountingAnswers);
  await bench.until(() => bench.status(first).phase === 'Running');
  await driver.install({ ...mountingAnswers, mount: `echo '{"status":"Failure","message":"disk is gone"}'; exit 1` });
  const second = flexPod('second');
  bench.pods.put(second);
  await bench.until(() => failures('second').length > 0);
  t.regex(failures('second')[0]?.message ?? '', /mount: disk is gone$/);
  t.is((await driver.calls()).filter((call) => call === 'init').length, 2, 'the replaced one is initialised again');
  await driver.install({ ...mountingAnswers, mount: 'echo nonsense' });
  await bench.until(() => failures('second').some(({ message }) => message.includes('unexpected output "nonsense')));
  await rm(join(directory, 'acme~shell'), { recursive: true });
  bench.pods.remove(first);
  bench.pods.remove(second);
  await bench.until(() => bench.agent.state.pods().length === 0 && bench.world.sandboxes.size === 0);
  await bench.pass(15_000);
  t.false(await isThere(join(bench.rootDir, 'agent/pods', uidOf(first))), 'without its driver the pod can still go');
});

test('--volume-plugin-dir: a volume that cannot be unmounted keeps its files, and the unmount is retried', async (t) => {
  const driver = await shellDriver(await temporaryDirectory(t), 'acme/shell', mountingAnswers);
  const bench = await startBench(t, { words: [`--volume-plugin-dir=${driver.directory}`] });
  const pod = flexPod('p');
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  await driver.install({ ...mountingAnswers, unmount: `echo '{"status":"Failure","message":"busy"}'` });
  bench.pods.remove(pod);
  const file = join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes/acme~shell/data/options');
  await bench.until(() => bench.world.sandboxes.size === 0);
  await bench.pass(15_000);
  t.true(await isThere(file));
  await driver.install(mountingAnswers);
  await bench.pass(20_000);
  t.false(await isThere(file));
});

test('without an API server the agent attaches a volume once for two pods and detaches it after the last', async (t) => {
  const driver = await shellDriver(await temporaryDirectory(t), 'acme/shell', attachingAnswers);
  const bench = await startBench(t, { words: [`--volume-plugin-dir=${driver.directory}`] });
  const [a, b] = [flexPod('a'), flexPod('b')];
  const at = (pod: Pod) => `pods/${uidOf(pod)}/volumes/acme~shell/data`;
  const shared = 'plugins/kubernetes.io/flexvolume/acme~shell/mounts/vol-7';
  bench.pods.put(a);
  await bench.until(() => bench.status(a).phase === 'Running');
  t.deepEqual(await driver.calls(), [
    'init',
    'getvolumename {}',
    'attach {} node-1',
    'waitforattach /dev/fake7 {}',
    `mountdevice ${shared} /dev/fake7 {}`,
    `mount ${at(a)} {}`,
  ]);
  t.is(await readFile(join(bench.rootDir, 'agent', shared, 'data'), 'utf8'), 'shared\n');
  bench.pods.put(b);
  await bench.until(() => bench.status(b).phase === 'Running');
  const before = (await driver.calls()).length;
  const since = async () => (await driver.calls()).slice(before);
  bench.pods.remove(a);
  await bench.until(() => bench.world.sandboxes.size === 1);
  await bench.pass(3_000);
  t.deepEqual(await since(), [`unmount ${at(a)}`], 'the other still uses it');
  bench.pods.remove(b);
  await bench.until(() => bench.world.sandboxes.size === 0);
  await bench.pass(3_000);
  t.deepEqual((await since()).slice(1), [`unmount ${at(b)}`, `unmountdevice ${shared}`, 'detach vol-7 node-1']);
  t.false(await isThere(join(bench.rootDir, 'agent', shared)));
});

test('calls that a driver does not support are replaced: the device is mounted once, and bind-mounted into each pod', async (t) => {
  const { mount: _m, unmount: _u, mountdevice: _d, unmountdevice: _e, ...rest } = attachingAnswers;
  const driver = await shellDriver(await temporaryDirectory(t), 'acme/shell', rest);
  const mounts: MountRequest[] = [];
  const unmounts: string[] = [];
  const bench = await startBench(t, {
    words: [`--volume-plugin-dir=${driver.directory}`],
    mounter: {
      mount: async (request) => void mounts.push(request),
      bind: async () => {},
      isMounted: async () => false,
      unmountBelow: async (path) => void unmounts.push(path),
    },
  });
  const pod = flexPod('p', { fsType: 'xfs', readOnly: true });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const shared = join(bench.rootDir, 'agent/plugins/kubernetes.io/flexvolume/acme~shell/mounts/vol-7');
  const target = join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes/acme~shell/data');
  t.deepEqual(mounts, [
    { type: 'xfs', source: '/dev/fake7', target: shared, options: ['ro'] },
    { type: '', source: shared, target, options: ['bind', 'ro'] },
  ]);
  bench.pods.remove(pod);
  await bench.until(() => bench.world.sandboxes.size === 0);
  await bench.pass(3_000);
  t.deepEqual(unmounts.slice(0, 2), [target, shared]);
});

asRoot(
  'fsGroup: files of a plugin volume get the group, unless with OnRootMismatch the root has it already',
  async (t) => {
    const fill = `mkdir -p "$2/deep"; echo x > "$2/deep/f"; chmod 600 "$2/deep/f"`;
    const answers = (root: string) => ({ ...mountingAnswers, mount: `${fill}; ${root}; echo '{"status":"Success"}'` });
    const driver = await shellDriver(await temporaryDirectory(t), 'acme/shell', answers(':'));
    const bench = await startBench(t, { words: [`--volume-plugin-dir=${driver.directory}`] });
    const groupOf = async (pod: Pod) => {
      bench.pods.put(pod);
      await bench.until(() => bench.status(pod).phase === 'Running');
      const { gid, mode } = await stat(join(bench.rootDir, 'agent/pods', uidOf(pod), 'volumes/acme~shell/data/deep/f'));
      return [gid, (mode & 0o7777).toString(8)];
    };
    const group = { fsGroup: 4321, fsGroupChangePolicy: 'OnRootMismatch' };
    t.deepEqual(await groupOf(flexPod('always', {}, { securityContext: { fsGroup: 4321 } })), [4321, '660']);
    t.deepEqual(await groupOf(flexPod('differs', {}, { securityContext: group })), [4321, '660']);
    t.deepEqual(await groupOf(flexPod('reads', { readOnly: true }, { securityContext: group })), [0, '600']);
    await driver.install(answers('chgrp 4321 "$2"; chmod 2770 "$2"'));
    t.deepEqual((await groupOf(flexPod('fits', {}, { securityContext: group })))[1], '600');
    await driver.install({
      ...answers(':'),
      init: `echo '{"status":"Success","capabilities":{"attach":false,"fsGroup":false}}'`,
    });
    t.deepEqual(await groupOf(flexPod('cannot', {}, { securityContext: group })), [0, '600']);
  },
);

for (const driver of ['../evil', 'a/b/c', '/abs', '..']) {
  test(`the driver name ${driver} is invalid`, async (t) => {
    const directory = await temporaryDirectory(t);
    await mkdir(join(directory, 'a'));
    const bench = await startBench(t, { words: [`--volume-plugin-dir=${directory}`] });
    const pod = flexPod('p', { driver });
    bench.pods.put(pod);
    await bench.until(() => bench.events.some(({ reason }) => reason === 'FailedMount'));
    t.regex(
      bench.events.find(({ reason }) => reason === 'FailedMount')?.message ?? '',
      /is not the name of a volume plugin/,
    );
  });
}
