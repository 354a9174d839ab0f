import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLogger } from '@keelson/core/runtime';
import type { coreV1, PersistentVolume, PersistentVolumeClaim, Pod } from '@keelson/kinds';
import { temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { AgentPaths } from '../../../src/base/agent-paths.ts';
import { createVolumes } from '../../../src/machine/volumes/create-volumes.ts';
import { type Mounter, type MountRequest, noMounter } from '../../../src/machine/volumes/mounter.ts';
import { testPod, wordsConfig } from '../../support/bench.ts';

const bound: PersistentVolumeClaim = {
  metadata: { name: 'data', namespace: 'default', uid: 'claim-1' },
  spec: { volumeName: 'pv' },
  status: { phase: 'Bound' },
};

const volumeOf = (source: Partial<coreV1.PersistentVolumeSpec>): PersistentVolume => ({
  metadata: { name: 'pv' },
  spec: { capacity: { storage: '1Gi' }, claimRef: { uid: 'claim-1' }, ...source },
});

interface Objects {
  claim?: PersistentVolumeClaim | undefined;
  volume?: PersistentVolume | undefined;
}

async function bench(t: ExecutionContext, objects: Objects) {
  const rootDir = await temporaryDirectory(t);
  const mounts: MountRequest[] = [];
  const mounter: Mounter = { ...noMounter, mount: async (request) => void mounts.push(request) };
  const { volumes } = createVolumes({
    config: wordsConfig(rootDir, []),
    paths: new AgentPaths(rootDir, join(rootDir, 'log')),
    dependencies: {
      mounter,
      logger: silentLogger,
    },
    onInUse: () => {},
  });
  let reads = 0;
  const facts = {
    place: { nodeName: 'node-1', hostIps: [], podIps: [] },
    objects: {
      configMap: async () => undefined,
      secret: async () => undefined,
      services: async () => [],
      claim: async (namespace: string, name: string) => {
        reads += 1;
        const { metadata } = objects.claim ?? {};
        return metadata?.namespace === namespace && metadata.name === name ? objects.claim : undefined;
      },
      volume: async (name: string) => (objects.volume?.metadata?.name === name ? objects.volume : undefined),
    },
    allocatable: {},
  };
  const provide = async (pod: Pod) => (await volumes.provide(pod, facts)).get('v');
  return { rootDir, mounts, provide, remove: (uid: string) => volumes.remove(uid), reads: () => reads };
}

function podWith(source: Partial<coreV1.Volume>): Pod {
  const pod = testPod('p');
  pod.spec.volumes = [{ name: 'v', ...source }];
  return pod;
}

const ofClaim = podWith({ persistentVolumeClaim: { claimName: 'data' } });

test('a claim is resolved to the volume that it is bound to, which is read once', async (t) => {
  const objects: Objects = {};
  const { rootDir, provide, reads, remove } = await bench(t, objects);
  const path = join(rootDir, 'there');
  objects.volume = volumeOf({ hostPath: { path, type: 'DirectoryOrCreate' } });
  objects.claim = { ...bound, status: { phase: 'Pending' } };
  await t.throwsAsync(provide(ofClaim), { message: 'volume "v": persistentvolumeclaim "data" is not bound' });
  objects.claim = bound;
  t.is(await provide(ofClaim), path);
  t.true((await stat(path)).isDirectory());
  t.is(reads(), 2);
  objects.claim = undefined;
  t.is(await provide(ofClaim), path, 'a running pod keeps its volume, whatever happens to the claim');
  t.is(reads(), 2);
  await writeFile(join(path, 'file'), 'kept');
  await remove(ofClaim.metadata?.uid ?? '');
  t.true((await stat(join(path, 'file'))).isFile(), 'the data is not that of the pod');
  await t.throwsAsync(provide(ofClaim), { message: 'volume "v": persistentvolumeclaim "data" not found' });
});

test('claims of several volumes of a pod are read once each', async (t) => {
  const { provide, reads } = await bench(t, { claim: bound, volume: volumeOf({ hostPath: { path: '/' } }) });
  const pod = testPod('p');
  pod.spec.volumes = ['v', 'w'].map((name) => ({ name, persistentVolumeClaim: { claimName: 'data' } }));
  for (let syncs = 0; syncs < 2; syncs += 1) t.is(await provide(pod), '/');
  t.is(reads(), 2);
});

test('paths of local volumes must exist, and network volumes are mounted', async (t) => {
  const objects: Objects = { claim: bound };
  const { rootDir, provide, mounts, remove } = await bench(t, objects);
  objects.volume = volumeOf({ local: { path: join(rootDir, 'none') } });
  await t.throwsAsync(provide(ofClaim), { message: /^volume "v": hostPath type check failed: .*none does not exist$/ });
  await remove(ofClaim.metadata?.uid ?? '');
  objects.volume = volumeOf({ local: { path: rootDir } });
  t.is(await provide(ofClaim), rootDir);
  await remove(ofClaim.metadata?.uid ?? '');
  objects.volume = volumeOf({ nfs: { server: 'files', path: '/data', readOnly: true } });
  await provide(ofClaim);
  t.like(mounts, [{ source: 'files:/data', options: ['ro'] }]);
});

for (const [title, objects, pod, message] of [
  ['a claim that is being deleted', { claim: deleting(bound) }, ofClaim, /"data" is being deleted$/],
  ['a volume that does not exist', { claim: bound }, ofClaim, /persistentvolume "pv" not found$/],
  [
    'a volume of another claim',
    { claim: bound, volume: volumeOf({ claimRef: { uid: 'other' } }) },
    ofClaim,
    /persistentvolume "pv" is not bound to "data"$/,
  ],
  [
    'a block device',
    { claim: bound, volume: volumeOf({ local: { path: '/' }, volumeMode: 'Block' }) },
    ofClaim,
    /block devices are not supported by this agent$/,
  ],
  [
    'a volume of a driver',
    { claim: bound, volume: volumeOf({ csi: { driver: 'd', volumeHandle: 'h' } }) },
    ofClaim,
    /persistent volumes of type csi are not supported by this agent$/,
  ],
  [
    'a claim that has the name of an ephemeral one',
    { claim: { ...bound, metadata: { ...bound.metadata, name: 'p-v' } } },
    podWith({ ephemeral: {} }),
    /persistentvolumeclaim "p-v" was not created for the pod$/,
  ],
] as const)
  test(`${title} cannot be mounted`, async (t) => {
    const { provide } = await bench(t, objects);
    await t.throwsAsync(provide(pod), { name: 'VolumeProblem', message });
  });

function deleting(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...claim, metadata: { ...claim.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
}
