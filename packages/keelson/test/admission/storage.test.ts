import type { KubeObject } from '@keelson/core';
import { Namespace, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test from 'ava';
import { processControllers } from '../../src/control-plane/component-statuses.ts';
import { chooseControllers } from '../../src/control-plane/controller-choice.ts';
import { createPlane } from '../../src/control-plane/create-control-plane.ts';
import { type ControlPlane, createControlPlane } from '../../src/index.ts';

const namespace = 'default';
const resourcesOf = (storage: string) => ({ requests: { storage } });
const resources = resourcesOf('1Gi');
const claimsOf = (plane: ControlPlane, of = namespace) => plane.client(PersistentVolumeClaim).namespace(of);
const claim = (name: string, finalizers?: string[]): PersistentVolumeClaim => ({
  metadata: { name, ...(finalizers && { finalizers }) },
  spec: { accessModes: ['ReadWriteOnce'], resources, storageClassName: '' },
});
const volume = (name: string): PersistentVolume => ({
  metadata: { name },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/tmp/v' } },
});
const claimFinalizer = 'kubernetes.io/pvc-protection';

async function finalizersOf(plane: ControlPlane): Promise<unknown[]> {
  const made = await claimsOf(plane).create(claim('dry'), { dryRun: true });
  const madeVolume = await plane.client(PersistentVolume).create(volume('dry'), { dryRun: true });
  return [made.metadata?.finalizers, madeVolume.metadata?.finalizers];
}

test('new claims and volumes are protected from the beginning, and those not in use can be deleted', async (t) => {
  await using plane = await createControlPlane();
  t.deepEqual(await finalizersOf(plane), [[claimFinalizer], ['kubernetes.io/pv-protection']]);
  const claims = claimsOf(plane);
  t.deepEqual((await claims.create(claim('data'))).metadata?.finalizers, [claimFinalizer]);
  const own = await claims.create(claim('own', [claimFinalizer, 'example.com/a']));
  t.deepEqual(own.metadata?.finalizers, [claimFinalizer, 'example.com/a']);
  t.deepEqual((await claims.create(claim('b', ['example.com/b']), { dryRun: true })).metadata?.finalizers, [
    'example.com/b',
    claimFinalizer,
  ]);
  const pods = plane.client(Pod).namespace(namespace);
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }];
  const spec = { nodeName: 'n1', volumes, containers: [{ name: 'c', image: 'app:1' }] };
  await pods.create({ metadata: { name: 'user' }, spec } as Pod);
  await claims.create(claim('unused'));
  await plane.client(PersistentVolume).create(volume('v'));
  for (const name of ['data', 'unused'])
    t.truthy(((await claims.delete(name)) as PersistentVolumeClaim).metadata?.deletionTimestamp);
  await plane.client(PersistentVolume).delete('v');
  await until(async () => (await plane.client(PersistentVolume).list()).items.length === 0);
  await until(async () => !(await claims.list()).items.some(({ metadata }) => metadata?.name === 'unused'));
  t.is((await claims.get('data')).metadata?.name, 'data', 'a claim in use remains');
  await pods.delete('user', { gracePeriodSeconds: 0 });
  await until(async () => !(await claims.list()).items.some(({ metadata }) => metadata?.name === 'data'));
});

test('a namespace with protected claims can be deleted', async (t) => {
  await using plane = await createControlPlane();
  await plane.client(Namespace).create({ metadata: { name: 'short' } });
  await claimsOf(plane, 'short').create(claim('data'));
  await plane.client(Namespace).delete('short');
  await until(async () => !(await plane.client(Namespace).list()).items.some(({ metadata: m }) => m?.name === 'short'));
  t.pass();
});

test('a server without the controllers that end the protection adds no finalizers', async (t) => {
  await using none = await createControlPlane({ controllers: false });
  t.deepEqual(await finalizersOf(none), [undefined, undefined]);
  await using some = await createControlPlane({ controllers: ['*', '-persistentvolumeclaim-protection-controller'] });
  t.deepEqual(await finalizersOf(some), [undefined, ['kubernetes.io/pv-protection']]);
  await using disabled = await createControlPlane({ disabledAdmissionPlugins: ['StorageObjectInUseProtection'] });
  t.deepEqual(await finalizersOf(disabled), [undefined, undefined]);
  // As in a worker thread: the main thread runs the controllers.
  const controllers = processControllers(chooseControllers(true));
  await using worker = await createPlane({ controllers: false }, { controllers });
  t.deepEqual(await finalizersOf(worker), [[claimFinalizer], ['kubernetes.io/pv-protection']]);
});

test('a bound claim grows only if its class allows it', async (t) => {
  await using plane = await createControlPlane({ controllers: false });
  const claims = claimsOf(plane);
  const classes = plane.client(StorageClass);
  const provisioner = 'example.com/disks';
  await classes.create({ metadata: { name: 'fixed' }, provisioner });
  await classes.create({ metadata: { name: 'elastic' }, provisioner, allowVolumeExpansion: true });
  const add = async (name: string, storageClassName: string, annotations = {}) => {
    const made = claim(name);
    const spec = { ...made.spec, storageClassName, volumeName: 'v' };
    const stored = await claims.create({ ...made, metadata: { name, annotations }, spec });
    const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
    await claims.updateSubresource(name, 'status', { ...stored, status } as KubeObject);
  };
  const resize = (name: string, storage: string) =>
    claims.patch(name, 'merge', { spec: { resources: { requests: { storage } } } });
  const byAnnotation = { 'volume.beta.kubernetes.io/storage-class': 'elastic' };
  await add('fixed', 'fixed');
  await add('none', '');
  await add('gone', 'missing');
  await add('elastic', 'elastic');
  await add('annotated', 'fixed', byAnnotation);
  for (const name of ['fixed', 'none', 'gone']) {
    const error = await t.throwsAsync(resize(name, '2Gi'), {
      message: /is forbidden: only dynamically provisioned pvc/,
    });
    t.is(
      error?.message,
      `persistentvolumeclaims "${name}" is forbidden: only dynamically provisioned pvc can be resized and the ` +
        'storageclass that provisions the pvc must support resize',
    );
    t.is((await resize(name, '1024Mi')).metadata?.name, name, 'the same amount in other units');
  }
  for (const name of ['elastic', 'annotated'])
    t.deepEqual((await resize(name, '2Gi')).spec.resources, resourcesOf('2Gi'));
});
