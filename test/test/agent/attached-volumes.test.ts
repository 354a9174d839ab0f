import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Node, Pod } from '@keelson/kinds';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

const annotation = 'volumes.kubernetes.io/controller-managed-attach-detach';

/** A driver that attaches; it responds to every command and records the first two words of each call. */
const script = (log: string) => `#!/bin/sh
case "$1" in
attach|detach) echo "$1 $3" >> '${log}' ;;
waitforattach) echo "$1 $2" >> '${log}' ;;
*) echo "$1" >> '${log}' ;;
esac
case "$1" in
getvolumename) echo '{"status":"Success","volumeName":"vol-7"}' ;;
attach) echo '{"status":"Success","device":"/dev/own"}' ;;
*) echo '{"status":"Success"}' ;;
esac
`;

let plane: TestPlane;
test.before(async () => {
  plane = await startTestPlane();
});
test.after.always(() => plane.close());

async function setting(t: ExecutionContext, name: string, words: readonly string[]) {
  t.timeout(60_000);
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const driver = join(dir, 'plugins/acme~shell/shell');
  const log = join(dir, 'calls');
  await mkdir(join(dir, 'plugins/acme~shell'), { recursive: true });
  await writeFile(driver, script(log));
  await chmod(driver, 0o755);
  const node = await startAgentNode({
    name,
    engine: createFakeRuntime(new FakeWorld()),
    api: plane.api,
    words: [`--volume-plugin-dir=${join(dir, 'plugins')}`, ...words],
    dir,
  });
  t.teardown(() => node.stop());
  const pods = plane.client(Pod).namespace('default');
  await pods.create({
    metadata: { name: `on-${name}` },
    spec: {
      nodeName: name,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: 'app:1' }],
      volumes: [{ name: 'data', flexVolume: { driver: 'acme/shell' } }],
    },
  } as Pod);
  const calls = async () => (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(0, -1);
  const runs = () => eventually(async () => (await pods.get(`on-${name}`)).status?.phase === 'Running', 30_000);
  return { pods, calls, runs, current: () => plane.client(Node).get(name) };
}

test('--enable-controller-attach-detach: the node reports volumes in use, and pods wait until the controller attaches them', async (t) => {
  const { pods, calls, runs, current } = await setting(t, 'attach-1', []);
  const used = await eventually(async () => {
    const node = await current();
    return node.status?.volumesInUse?.length ? node : undefined;
  });
  t.is(used.metadata?.annotations?.[annotation], 'true');
  t.deepEqual(used.status?.volumesInUse, ['flexvolume-acme/shell/vol-7']);
  await eventually(async () => (await calls()).includes('getvolumename'));
  t.false(
    (await calls()).some((call) => /attach|mount/.test(call)),
    'not attached, not mounted',
  );
  t.not((await pods.get('on-attach-1')).status?.phase, 'Running');
  const volumesAttached = [{ name: 'flexvolume-acme/shell/vol-7', devicePath: '/dev/controller' }];
  await plane.client(Node).patchSubresource('attach-1', 'status', 'merge', { status: { volumesAttached } });
  // The pod is attached now; without this the agent would poll again later.
  await pods.patch('on-attach-1', 'merge', { metadata: { annotations: { look: 'again' } } });
  await runs();
  t.deepEqual(
    (await calls()).filter((call) => !/init|getvolumename/.test(call)),
    ['waitforattach /dev/controller', 'mountdevice', 'mount'],
  );
  await pods.delete('on-attach-1');
  await eventually(async () => !(await current()).status?.volumesInUse?.length);
  t.deepEqual((await calls()).slice(-2), ['unmount', 'unmountdevice'], 'the controller detaches');
});

test('--enable-controller-attach-detach=false: the agent attaches and detaches volumes, and the node reports none', async (t) => {
  const { pods, calls, runs, current } = await setting(t, 'attach-2', ['--enable-controller-attach-detach=false']);
  await runs();
  t.deepEqual(
    (await calls()).filter((call) => !/init|getvolumename/.test(call)),
    ['attach attach-2', 'waitforattach /dev/own', 'mountdevice', 'mount'],
  );
  const node = await current();
  t.is(node.metadata?.annotations?.[annotation], undefined);
  t.is(node.status?.volumesInUse, undefined);
  await pods.delete('on-attach-2');
  await eventually(async () => (await calls()).at(-1) === 'detach attach-2');
});
