import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { coreV1 } from '@keelson/kinds';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { AgentPaths } from '../../../src/base/agent-paths.ts';
import { runProgram } from '../../../src/base/run-program.ts';
import { enteredHost, localHost } from '../../../src/machine/host/host-access.ts';
import { noMounter, systemMounter } from '../../../src/machine/volumes/mounter.ts';
import { SubPaths } from '../../../src/machine/volumes/sub-path.ts';
import { startBench, testPod } from '../../support/bench.ts';
import { mayMount, mountNamespace } from '../../support/mount-namespace.ts';
import type { RaceOutcome } from '../../support/sub-path-race.ts';

const asRoot = mayMount || process.env['CI'] ? test : test.skip;
const racer = fileURLToPath(new URL('../../support/sub-path-race.js', import.meta.url));
const use = { uid: 'u', volume: 'v', container: 'c', index: 0 };

asRoot('a sub path whose directories are replaced by links concurrently never leaves its volume', async (t) => {
  t.timeout(120_000);
  const words = [
    '--mount',
    '--propagation',
    'private',
    process.execPath,
    racer,
    await temporaryDirectory(t),
    '2000',
    '40',
  ];
  const { stdout } = await promisify(execFile)('unshare', words);
  const outcome = JSON.parse(stdout) as RaceOutcome;
  t.log(outcome);
  t.is(outcome.escaped, 0);
  t.is(outcome.inside + outcome.refused, 2040);
  t.true(outcome.inside > 0 && outcome.refused > 0, 'the race was run');
});

asRoot(
  'a sub path of another mount namespace is mounted as opened, and rejected when its path contains a link',
  async (t) => {
    const dir = await temporaryDirectory(t);
    const host = enteredHost(runProgram, await mountNamespace(t, dir));
    const { files } = host;
    const mounter = systemMounter(undefined, host);
    const paths = new AgentPaths(join(dir, 'agent'), join(dir, 'log'));
    const subPaths = new SubPaths({ paths, host, mounter });
    const volume = join(dir, "vol'ume");
    await files.makeDirectory(join(volume, 'in/deep'), 0o755);
    await files.write(join(volume, 'in/deep/f'), Buffer.from('kept'), 0o644);
    const { hostPath } = await subPaths.provide(volume, 'in/deep', use);
    t.is(hostPath, join(dir, 'agent/pods/u/volume-subpaths/v/c/0'));
    t.is((await files.read(join(hostPath, 'f'))).toString(), 'kept');
    const file = await subPaths.provide(volume, 'in/deep/f', { ...use, index: 1 });
    t.is((await files.read(file.hostPath)).toString(), 'kept');
    t.is(
      (await subPaths.provide(volume, 'in/deep', use)).hostPath,
      hostPath,
      'the next container has it at the same place',
    );
    await files.rename(join(volume, 'in'), join(volume, 'out'));
    await files.makeLink('out', join(volume, 'in'));
    t.is((await files.read(join(hostPath, 'f'))).toString(), 'kept');
    await t.throwsAsync(mounter.bind(join(volume, 'in/deep'), hostPath), { message: /contains a symbolic link/ });
    await mounter.unmountBelow(paths.pod('u'));
    t.deepEqual(await files.list(hostPath), []);
  },
);

test('without a mounter the runtime receives the resolved path, and verifies it', async (t) => {
  const dir = await temporaryDirectory(t);
  const paths = new AgentPaths(join(dir, 'agent'), join(dir, 'log'));
  const subPaths = new SubPaths({ paths, host: localHost, mounter: noMounter });
  await localHost.files.makeDirectory(join(dir, 'v/in'), 0o755);
  await localHost.files.makeLink('in', join(dir, 'v/link'));
  t.deepEqual(await subPaths.provide(join(dir, 'v'), 'link', use), { hostPath: join(dir, 'v/in'), exact: true });
});

for (const exactMounts of [true, false]) {
  test(`a sub path without mounts ${exactMounts ? 'is for' : 'is refused with'} a runtime that ${
    exactMounts ? 'checks' : 'does not check'
  } paths itself`, async (t) => {
    const bench = await startBench(t, { runtime: { exactMounts } });
    const volumes: coreV1.Volume[] = [{ name: 'v', emptyDir: {} }];
    const containers = [
      { name: 'main', image: 'app', volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'deep' }] },
    ];
    const pod = testPod('p', { volumes, containers });
    bench.pods.put(pod);
    const waiting = () => bench.status(pod).containerStatuses?.[0]?.state?.waiting;
    await bench.until(
      () => bench.status(pod).phase === 'Running' || waiting()?.reason === 'CreateContainerConfigError',
    );
    if (exactMounts) t.is(bench.status(pod).phase, 'Running');
    else t.is(waiting()?.message, 'subPath "deep" needs a mount, and this node cannot mount');
  });
}

test('volumes that the agent updates are read-only in containers, also with a sub path', async (t) => {
  const bench = await startBench(t);
  const fields = { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] };
  const volumes: coreV1.Volume[] = [
    { name: 'facts', downwardAPI: fields },
    { name: 'all', projected: { sources: [{ downwardAPI: fields }] } },
    { name: 'own', emptyDir: {} },
  ];
  const volumeMounts = [
    { name: 'facts', mountPath: '/facts' },
    { name: 'all', mountPath: '/name', subPath: 'name' },
    { name: 'own', mountPath: '/own' },
  ];
  const pod = testPod('p', { volumes, containers: [{ name: 'main', image: 'app', volumeMounts }] });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  const [container] = bench.world.containers.values();
  const isReadonly = (path: string) =>
    container?.config.mounts?.find(({ containerPath }) => containerPath === path)?.readonly;
  t.deepEqual(['/facts', '/name', '/own'].map(isReadonly), [true, true, undefined]);
});

test('when the runtime cannot mount, a variable contains the path of the service account files', async (t) => {
  let config: { readonly env?: readonly object[]; readonly mounts?: readonly object[] } | undefined;
  const script: NonNullable<NonNullable<Parameters<typeof startBench>[1]>['script']> = (start) => {
    config = start.config;
    return {};
  };
  const bench = await startBench(t, { runtime: { mounts: false }, script });
  const name = 'kube-api-access-abcde';
  const sources = [{ downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } }];
  const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount';
  const pod = testPod('p', {
    volumes: [{ name, projected: { sources } }],
    containers: [{ name: 'main', image: 'app', volumeMounts: [{ name, mountPath, readOnly: true }] }],
  });
  bench.pods.put(pod);
  await bench.until(() => bench.status(pod).phase === 'Running');
  t.deepEqual(config?.mounts, []);
  const variable = config?.env?.find((entry) => 'name' in entry && entry.name === 'KEELSON_SERVICE_ACCOUNT_DIRECTORY');
  const { value = '' } = (variable ?? {}) as { readonly value?: string };
  t.is(await readFile(join(value, 'namespace'), 'utf8'), 'default');
});
