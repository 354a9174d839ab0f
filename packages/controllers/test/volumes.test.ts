import type { ApiClient, KindDefinition } from '@keelson/core';
import { Event, Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { claimBinder } from '../src/volumes/claim-binder.ts';
import { ephemeralClaims } from '../src/volumes/ephemeral-claims.ts';
import { claimProtection, volumeProtection } from '../src/volumes/storage-protection.ts';
import { volumePhases } from '../src/volumes/volume-phases.ts';
import { Random } from './support/random.ts';
import { WorkloadPlane } from './support/workload-plane.ts';

const controllers = [claimBinder, volumePhases, claimProtection, volumeProtection, ephemeralClaims];
const selectedNode = 'volume.kubernetes.io/selected-node';

type VolumeParts = Partial<PersistentVolume['spec']> & {
  readonly size?: string;
  readonly labels?: Record<string, string>;
};
type ClaimParts = Partial<PersistentVolumeClaim['spec']> & { readonly size?: string };

class Storage {
  readonly workloads: WorkloadPlane;

  private constructor(workloads: WorkloadPlane) {
    this.workloads = workloads;
  }

  static async start(t: ExecutionContext): Promise<Storage> {
    return new Storage(await WorkloadPlane.start(t, { controllers, nodeOf: () => 'n1' }));
  }

  get volumes() {
    return this.workloads.plane.client(PersistentVolume);
  }

  get claims() {
    return this.workloads.objects(PersistentVolumeClaim);
  }

  async addVolume(name: string, { size = '1Gi', labels, ...spec }: VolumeParts = {}): Promise<void> {
    await this.volumes.create({
      metadata: { name, ...(labels && { labels }) },
      spec: {
        capacity: { storage: size },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: `/tmp/${name}` },
        ...spec,
      },
    });
  }

  async addClaim(name: string, { size = '1Gi', ...spec }: ClaimParts = {}): Promise<void> {
    const resources = { requests: { storage: size } };
    const own = { accessModes: ['ReadWriteOnce'], resources, storageClassName: '', ...spec };
    await this.claims.create({ metadata: { name }, spec: own });
  }

  async addClass(name: string, provisioner: string, volumeBindingMode = 'WaitForFirstConsumer'): Promise<void> {
    await this.workloads.plane.client(StorageClass).create({ metadata: { name }, provisioner, volumeBindingMode });
  }

  async volume(name: string, phase: string): Promise<PersistentVolume> {
    return until(async () => {
      const found = await this.volumes.get(name);
      return found.status?.phase === phase && found;
    }, `volume ${name} is ${phase}`);
  }

  claim(name: string, phase: string): Promise<PersistentVolumeClaim> {
    return this.workloads.reaches(PersistentVolumeClaim, name, ({ status }) => status?.phase === phase);
  }
}

test('a claim is bound to the smallest volume with what it requests; both name each other', async (t) => {
  const storage = await Storage.start(t);
  await storage.addVolume('large', { size: '10Gi' });
  await storage.addVolume('small', { size: '500Mi' });
  await storage.addVolume('shared', { size: '1Gi', accessModes: ['ReadWriteMany'] });
  await storage.addVolume('classy', { size: '1Gi', storageClassName: 'classy' });
  await storage.addVolume('block', { size: '1Gi', volumeMode: 'Block' });
  await storage.addVolume('fit', { size: '2Gi' });
  await storage.volume('fit', 'Available');
  await storage.addClaim('data');
  const claim = await storage.claim('data', 'Bound');
  t.is(claim.spec.volumeName, 'fit');
  t.deepEqual(claim.status?.capacity, { storage: '2Gi' });
  t.deepEqual(claim.status?.accessModes, ['ReadWriteOnce']);
  const yes = { 'pv.kubernetes.io/bound-by-controller': 'yes' };
  t.deepEqual(claim.metadata?.annotations, { ...yes, 'pv.kubernetes.io/bind-completed': 'yes' });
  t.deepEqual(claim.metadata?.finalizers, ['kubernetes.io/pvc-protection']);
  const volume = await storage.volume('fit', 'Bound');
  t.like(volume.spec.claimRef, { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' });
  t.is(volume.spec.claimRef?.uid, claim.metadata?.uid);
  t.deepEqual(volume.metadata?.annotations, yes);
  t.deepEqual(volume.metadata?.finalizers, ['kubernetes.io/pv-protection']);

  await storage.claims.delete('data');
  t.is((await storage.volume('fit', 'Released')).spec.claimRef?.name, 'data', 'its data is not given to another claim');
  await storage.addClaim('next', { size: '2Gi' });
  t.is((await storage.claim('next', 'Bound')).spec.volumeName, 'large');
});

test('a claim with a selector gets a volume with the labels; reservations come before everything', async (t) => {
  const storage = await Storage.start(t);
  await storage.addVolume('plain');
  await storage.addVolume('fast', { size: '5Gi', labels: { tier: 'fast' } });
  await storage.addVolume('reserved', { size: '9Gi', claimRef: { namespace: 'default', name: 'owner' } });
  await storage.volume('reserved', 'Available');
  await storage.volume('fast', 'Available');
  await storage.addClaim('selective', { selector: { matchLabels: { tier: 'fast' } } });
  t.is((await storage.claim('selective', 'Bound')).spec.volumeName, 'fast');
  await storage.addClaim('owner');
  t.is((await storage.claim('owner', 'Bound')).spec.volumeName, 'reserved');
  const { metadata } = await storage.volume('reserved', 'Bound');
  t.is(metadata?.annotations, undefined, 'the reservation is that of a user');
  await storage.addClaim('named', { volumeName: 'fast' });
  await storage.workloads.recorded('named', 'FailedBinding', /^volume "fast" already bound to a different claim\.$/);
  t.is((await storage.claim('named', 'Pending')).spec.volumeName, 'fast');
});

test('a claim without a volume waits, and events state why', async (t) => {
  const storage = await Storage.start(t);
  const { workloads } = storage;
  await storage.addClass('outside', 'example.com/disks', 'Immediate');
  await storage.addClass('delayed', 'example.com/disks');
  await storage.addClass('manual', 'kubernetes.io/no-provisioner', 'Immediate');
  for (const storageClassName of ['', 'missing', 'outside', 'delayed', 'manual'])
    await storage.addClaim(`of-${storageClassName}x`, { storageClassName });
  const nothing = /^no persistent volumes available for this claim and no storage class is set$/;
  await workloads.recorded('of-x', 'FailedBinding', nothing);
  await workloads.recorded('of-missingx', 'ProvisioningFailed', /^storageclass\.storage\.k8s\.io "missing" not found$/);
  await workloads.recorded('of-outsidex', 'ExternalProvisioning', /^Waiting for a volume .*'example\.com\/disks' or/);
  await workloads.recorded('of-delayedx', 'WaitForFirstConsumer', /^waiting for first consumer to be created before/);
  await workloads.recorded('of-manualx', 'ProvisioningFailed', /^no volume plugin matched name: kubernetes\.io\/no-/);
  const marked = await storage.claim('of-outsidex', 'Pending');
  t.is(marked.metadata?.annotations?.['volume.kubernetes.io/storage-provisioner'], 'example.com/disks');
  t.is((await storage.claim('of-delayedx', 'Pending')).metadata?.annotations, undefined);
  const sources = (await workloads.list(Event)).map(({ source }) => source?.component);
  t.deepEqual([...new Set(sources)], ['persistentvolume-controller']);

  await storage.addVolume('late', { storageClassName: 'missing' });
  t.is((await storage.claim('of-missingx', 'Bound')).spec.volumeName, 'late');
  await storage.addClass('missing', 'example.com/disks', 'Immediate');
});

test('a delayed claim gets a volume that the selected node reaches; without one another node is selected', async (t) => {
  const storage = await Storage.start(t);
  await storage.addClass('local', 'kubernetes.io/no-provisioner');
  for (const name of ['n1', 'n2', 'n3']) {
    const labels = { 'kubernetes.io/hostname': name };
    await storage.workloads.plane.client(Node).create({ metadata: { name, labels } } as Node);
    if (name === 'n3') continue;
    const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }];
    const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
    await storage.addVolume(`on-${name}`, { storageClassName: 'local', nodeAffinity });
    await storage.volume(`on-${name}`, 'Available');
  }
  const select = (claim: string, node: string) =>
    storage.claims.patch(claim, 'merge', { metadata: { annotations: { [selectedNode]: node } } });
  await storage.addClaim('a', { storageClassName: 'local' });
  await storage.workloads.recorded('a', 'WaitForFirstConsumer', /./);
  await select('a', 'n3');
  const isFree = ({ metadata }: PersistentVolumeClaim) => metadata?.annotations?.[selectedNode] === undefined;
  await storage.workloads.reaches(PersistentVolumeClaim, 'a', isFree);
  await select('a', 'n2');
  t.is((await storage.claim('a', 'Bound')).spec.volumeName, 'on-n2');
});

test('a claim whose volume is gone or has another claim is lost', async (t) => {
  const storage = await Storage.start(t);
  await storage.addVolume('v');
  await storage.addClaim('data');
  await storage.claim('data', 'Bound');
  await storage.volume('v', 'Bound');
  await storage.addVolume('unused');
  await storage.volume('unused', 'Available');
  await storage.volumes.delete('v');
  // The controllers have observed the first deletion when they have carried out the second.
  await storage.volumes.delete('unused');
  await until(async () => (await storage.volumes.list()).items.length === 1, 'a free volume is deleted');
  const deleting = await storage.volumes.get('v');
  t.truthy(deleting.metadata?.deletionTimestamp, 'a volume in use is protected');
  await storage.volumes.patch('v', 'merge', { metadata: { finalizers: null } });
  const { spec, status } = await storage.claim('data', 'Lost');
  t.is(spec.volumeName, 'v');
  t.deepEqual(status, { phase: 'Lost' });
  const lost = /^Bound claim has lost its PersistentVolume\. Data on the volume is lost!$/;
  await storage.workloads.recorded('data', 'ClaimLost', lost);
  await storage.claims.patch('data', 'merge', { metadata: { labels: { seen: 'again' } } });
  // Claims are reconciled one after the other.
  await storage.addVolume('w');
  await storage.addClaim('later');
  await storage.claim('later', 'Bound');
  const events = (await storage.workloads.list(Event)).filter(({ reason }) => reason === 'ClaimLost');
  t.deepEqual(
    events.map(({ count }) => count),
    [1],
  );
});

test('a released volume fails when its policy cannot be carried out, and is left to its provisioner', async (t) => {
  const storage = await Storage.start(t);
  const provisionedBy = { 'pv.kubernetes.io/provisioned-by': 'example.com/disks' };
  const claimRef = (name: string) => ({ namespace: 'default', name, uid: 'of-a-claim-that-is-gone' });
  for (const [name, persistentVolumeReclaimPolicy] of [
    ['deleted', 'Delete'],
    ['recycled', 'Recycle'],
    ['retained', 'Retain'],
  ] as const)
    await storage.addVolume(name, { persistentVolumeReclaimPolicy, claimRef: claimRef(name) });
  await storage.volumes.create({
    metadata: { name: 'provisioned', annotations: provisionedBy },
    spec: {
      ...(await storage.volumes.get('deleted')).spec,
      claimRef: claimRef('provisioned'),
    },
  });
  const { status } = await storage.volume('deleted', 'Failed');
  t.regex(status?.message ?? '', /no deletable volume plugin matched$/);
  t.is((await storage.volume('recycled', 'Failed')).status?.message, 'No recycler plugin found for the volume!');
  await storage.volume('retained', 'Released');
  await storage.volume('provisioned', 'Released');
});

test('a volume that was reserved for a claim with another volume is free again', async (t) => {
  const storage = await Storage.start(t);
  await storage.addVolume('first');
  await storage.addClaim('data');
  const { metadata } = await storage.claim('data', 'Bound');
  const reference = { namespace: 'default', name: 'data', uid: metadata?.uid ?? '' };
  await storage.addVolume('second', { claimRef: reference });
  const second = await storage.volume('second', 'Available');
  t.deepEqual(second.spec.claimRef, { namespace: 'default', name: 'data' });
});

test('a claim is deleted after the pod that uses it; one of an ephemeral volume belongs to its pod', async (t) => {
  const storage = await Storage.start(t);
  await storage.addVolume('v');
  await storage.addVolume('w');
  await storage.addClaim('data');
  await storage.claim('data', 'Bound');
  const template = { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } };
  const volumes = [
    { name: 'd', persistentVolumeClaim: { claimName: 'data' } },
    { name: 'e', ephemeral: { volumeClaimTemplate: { ...template, metadata: { labels: { a: 'b' } } } } },
  ];
  const pods = storage.workloads.objects(Pod);
  const spec = { volumes, containers: [{ name: 'main', image: 'app:1' }] };
  const pod = await pods.create({ metadata: { name: 'user', finalizers: ['example.com/hold'] }, spec });
  await storage.workloads.reaches(Pod, 'user', ({ status }) => status?.phase === 'Running');
  const made = await storage.claim('user-e', 'Bound');
  t.deepEqual(made.metadata?.labels, { a: 'b' });
  t.like(made.metadata?.ownerReferences?.[0], { kind: 'Pod', name: 'user', uid: pod.metadata?.uid, controller: true });
  await storage.claims.delete('data');
  // The controllers have observed the deletion when they have bound a claim that is newer.
  await storage.addVolume('x');
  await storage.addClaim('later');
  await storage.claim('later', 'Bound');
  t.truthy((await storage.claims.get('data')).metadata?.deletionTimestamp);
  await pods.patch('user', 'merge', { metadata: { finalizers: null } });
  await pods.delete('user');
  await until(async () => (await storage.claims.list()).items.every(({ metadata }) => metadata?.name !== 'data'));
});

test('a claim whose pod only the watch does not report is kept', async (t) => {
  const wrapClient = (client: ApiClient): ApiClient => {
    const pods = client.resource(Pod);
    const hidden = Object.assign(Object.create(pods) as typeof pods, {
      namespace: pods.namespace.bind(pods),
      list: async (...call: Parameters<typeof pods.list>) => ({ ...(await pods.list(...call)), items: [] }),
      watch: (options: Parameters<typeof pods.watch>[0]) =>
        pods.watch({ ...options, fieldSelector: 'metadata.name=x' }),
    });
    return Object.assign(Object.create(client) as ApiClient, {
      resource: (kind: KindDefinition) => (kind.kind === 'Pod' ? hidden : client.resource(kind)),
    });
  };
  const workloads = await WorkloadPlane.start(t, { controllers: [claimProtection], nodeOf: () => 'n1', wrapClient });
  const claims = workloads.objects(PersistentVolumeClaim);
  const protect = async (name: string) => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    await claims.create({ metadata: { name }, spec });
    await workloads.reaches(PersistentVolumeClaim, name, ({ metadata }) => metadata?.finalizers?.length === 1);
  };
  for (const name of ['data', 'unused', 'next']) await protect(name);
  const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }];
  const spec = { volumes, containers: [{ name: 'main', image: 'app:1' }] };
  await workloads.objects(Pod).create({ metadata: { name: 'user' }, spec });
  await workloads.reaches(Pod, 'user', ({ status }) => status?.phase === 'Running');
  for (const name of ['data', 'unused', 'next']) await claims.delete(name);
  const left = async () => (await claims.list()).items.map(({ metadata }) => metadata?.name);
  await until(async () => (await left()).length === 1);
  t.deepEqual(await left(), ['data']);
});

test('a claim of another owner with the name of one of an ephemeral volume is reported', async (t) => {
  const storage = await Storage.start(t);
  await storage.addClaim('user-e');
  const template = { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } };
  const volumes = [{ name: 'e', ephemeral: { volumeClaimTemplate: template } }];
  const spec = { volumes, containers: [{ name: 'main', image: 'app:1' }] };
  await storage.workloads.objects(Pod).create({ metadata: { name: 'user' }, spec });
  await storage.workloads.recorded(
    'user',
    'FailedBinding',
    /^ephemeral volume e: PVC default\/user-e was not created for pod default\/user \(pod is not owner\)$/,
  );
  t.pass();
});

test('random claims and volumes: every bound claim has a volume of its own with what it requests', async (t) => {
  const seed = Date.now() % 1_000_000;
  const random = new Random(seed);
  const storage = await Storage.start(t);
  const sizes = ['1Gi', '2Gi', '3Gi'];
  for (let at = 0; at < 40; at += 1) {
    if (random.below(2) === 0) await storage.addVolume(`v${at}`, { size: random.pick(sizes) });
    else await storage.addClaim(`c${at}`, { size: random.pick(sizes) });
  }
  const state = async () => [(await storage.volumes.list()).items, (await storage.claims.list()).items] as const;
  const sizeOf = (object: PersistentVolume) => object.spec.capacity?.['storage'] ?? '';
  await until(async () => {
    // Conflicts are retried after a time.
    storage.workloads.clock.advance(1_000);
    const [volumes, claims] = await state();
    const open = claims.filter(({ status }) => status?.phase !== 'Bound');
    const free = volumes.filter(({ status }) => status?.phase !== 'Bound');
    const fits = open.some((claim) =>
      free.some((volume) => sizeOf(volume) >= (claim.spec.resources?.requests?.['storage'] ?? '')),
    );
    return !fits && free.every(({ status }) => status?.phase === 'Available');
  }, `no free volume fits a claim; seed ${seed}`);
  const [volumes, claims] = await state();
  const used = claims.flatMap(({ spec }) => (spec.volumeName ? [spec.volumeName] : []));
  t.is(new Set(used).size, used.length, `seed ${seed}`);
  for (const { metadata, spec } of claims) {
    const volume = volumes.find((one) => one.metadata?.name === spec.volumeName);
    if (volume === undefined) continue;
    t.is(volume.spec.claimRef?.uid, metadata?.uid, `seed ${seed}`);
    t.true(sizeOf(volume) >= (spec.resources?.requests?.['storage'] ?? ''), `seed ${seed}`);
  }
});
