import { access, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { behaviours } from '@keelson/runtime-fake';
import test from 'ava';
import { uidOf } from '../../../src/base/pod/pod-spec.ts';
import { startBench, testPod } from '../../support/bench.ts';

const minute = 60_000;
const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

test('of a crashing container the newest instance and one ended instance are kept, with their logs only', async (t) => {
  const bench = await startBench(t, { script: () => behaviours.crashLoop(), logs: true });
  const main = {
    name: 'main',
    image: 'app:1',
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePath: '/dev/termination-log',
  };
  const pod = testPod('crash', { containers: [main] });
  const logs = join(bench.rootDir, 'log/pods', uidOf(pod));
  await mkdir(logs, { recursive: true });
  for (let i = 0; i < 10; i += 1) await writeFile(join(logs, `main_${i}.log`), `${i}\n`);
  bench.pods.put(pod);
  await bench.until(() => bench.containers('main')[0]?.attempt === 4, 30 * minute);
  await bench.pass(1000);
  t.deepEqual(
    bench.containers('main').map(({ attempt }) => attempt),
    [4, 3],
  );
  t.deepEqual((await readdir(logs)).filter((name) => /_[0-4]\.log/.test(name)).sort(), ['main_3.log', 'main_4.log']);
  const links = await readdir(join(bench.rootDir, 'log/containers'));
  t.deepEqual(links.map((name) => name.replace(/container-\d+/, '')).sort(), [
    'crash_default_main-.log',
    'crash_default_main-.log',
  ]);
  const files = await readdir(join(bench.rootDir, 'agent/pods', uidOf(pod), 'containers'));
  t.deepEqual(files.sort(), ['main_3.termination-log', 'main_4.termination-log']);
});

test('finished pods keep one ended container and one sandbox; the rest is removed within a minute', async (t) => {
  const bench = await startBench(t, { script: () => behaviours.exitAfter(1000, 1) });
  const pod = testPod('job', { restartPolicy: 'Never' });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Failed');
  // As an agent that was interrupted leaves them.
  const [container] = bench.world.containers.values();
  const { runtime } = bench.engine;
  if (container === undefined) throw new Error('the container is there');
  const { config, sandbox } = container;
  for (const attempt of [1, 2, 3]) {
    const sandboxId = await runtime.runPodSandbox({
      ...sandbox.config,
      metadata: { ...sandbox.config.metadata, attempt },
    });
    const id = await runtime.createContainer(sandboxId, { ...config, metadata: { ...config.metadata, attempt } });
    await runtime.startContainer(id);
    await runtime.stopPodSandbox(sandboxId);
  }
  await bench.pass(minute + 10_000);
  t.deepEqual(
    bench.containers('main').map(({ attempt }) => attempt),
    [3, 2],
  );
  t.deepEqual(
    [...bench.world.sandboxes.values()].map(({ config: { metadata } }) => metadata.attempt).sort(),
    [2, 3],
    'a sandbox stays as long as a container in it does',
  );
});

test('files and logs of an unknown pod are found by its directory and removed; those of other agents are kept', async (t) => {
  const bench = await startBench(t);
  bench.pods.put(testPod('other'));
  const at = (...parts: string[]) => join(bench.rootDir, ...parts);
  await mkdir(at('agent/pods/lost/volumes/x'), { recursive: true });
  for (const uid of ['lost', 'theirs']) {
    await mkdir(at('log/pods', uid), { recursive: true });
    await mkdir(at('log/containers'), { recursive: true });
    await writeFile(at('log/pods', uid, 'main_0.log'), 'x');
    await symlink(at('log/pods', uid, 'main_0.log'), at('log/containers', `${uid}.log`));
  }
  await bench.pass(5_000);
  t.false(await isThere(at('agent/pods/lost')));
  t.false(await isThere(at('log/pods/lost')));
  t.true(await isThere(at('log/pods/theirs/main_0.log')));
  const links = (await readdir(at('log/containers'))).filter((name) => !name.startsWith('other_'));
  t.deepEqual(links, ['theirs.log']);
});

test('a directory that cannot be removed does not prevent the removal of others', async (t) => {
  const refused: string[] = [];
  const bench = await startBench(t, {
    mounter: {
      mount: async () => {},
      bind: async () => {},
      isMounted: async () => false,
      unmountBelow: async (path) => {
        if (!path.endsWith('/busy')) return;
        refused.push(path);
        throw new Error('target is busy');
      },
    },
  });
  const at = (uid: string) => join(bench.rootDir, 'agent/pods', uid);
  for (const uid of ['busy', 'later']) await mkdir(at(uid), { recursive: true });
  await bench.pass(5_000);
  t.true(await isThere(at('busy')));
  t.false(await isThere(at('later')));
  t.true(refused.length > 1, 'it is tried again');
});

test('no files are removed before every source has delivered its pods', async (t) => {
  const bench = await startBench(t);
  bench.pods.seen = false;
  await mkdir(join(bench.rootDir, 'agent/pods/lost'), { recursive: true });
  await bench.pass(10_000);
  t.true(await isThere(join(bench.rootDir, 'agent/pods/lost')));
  bench.pods.seen = true;
  await bench.pass(3_000);
  t.false(await isThere(join(bench.rootDir, 'agent/pods/lost')));
});
