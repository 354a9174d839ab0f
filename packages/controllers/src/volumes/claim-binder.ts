import {
  type ControllerDefinition,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
  storageClassOf,
  volumeReaches,
  volumesFor,
} from '@keelson/kinds';
import { annotationOf, annotations, isBoundTo, keyOfReference, withAnnotations } from './bindings.ts';

/** The provisioner in storage classes without dynamic provisioning, whose volumes are created manually. */
const noProvisioner = 'kubernetes.io/no-provisioner';

/**
 * Binds claims to volumes. A claim without a matching volume is left to the provisioner of its class. A claim whose
 * class has the mode WaitForFirstConsumer is bound when the scheduler has selected a node. Rules, reasons and messages
 * are those of kube-controller-manager. There is only one worker, so that two claims are never bound to one volume.
 */
export const claimBinder: ControllerDefinition<PersistentVolumeClaim> = {
  name: 'persistentvolume-binder-controller',
  eventSource: 'persistentvolume-controller',
  kind: PersistentVolumeClaim,
  related: [
    relatedKind(PersistentVolume, (volume, _before, read) => {
      const reference = keyOfReference(volume);
      return reference === undefined ? waitingClaims(read, storageClassOf(volume)) : [reference];
    }),
    relatedKind(StorageClass, ({ metadata }, _before, read) => waitingClaims(read, metadata?.name ?? '')),
    relatedKind(Node),
  ],
  reconcile: (claim, run) =>
    annotationOf(claim, annotations.bindCompleted) === undefined ? bindNew(claim, run) : checkBound(claim, run),
};

function waitingClaims(read: ReconcileRun['read'], className: string): readonly string[] {
  return read(PersistentVolumeClaim)
    .list()
    .filter((claim) => !claim.spec.volumeName && storageClassOf(claim) === className)
    .map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
}

async function checkBound(claim: PersistentVolumeClaim, run: ReconcileRun): Promise<ReconcileResult> {
  const { volumeName } = claim.spec;
  const lost = async (reason: string, message: string) => {
    if (claim.status?.phase !== 'Lost') run.event(claim, 'Warning', reason, message);
    await patchStatus(run, PersistentVolumeClaim, claim, {
      phase: 'Lost',
      accessModes: undefined,
      capacity: undefined,
    });
    return undefined;
  };
  const noData = 'Data on the volume is lost!';
  if (!volumeName) return lost('ClaimLost', `Bound claim has lost reference to PersistentVolume. ${noData}`);
  const volume = run.read(PersistentVolume).get(volumeName);
  if (volume === undefined) return lost('ClaimLost', `Bound claim has lost its PersistentVolume. ${noData}`);
  if (volume.spec.claimRef === undefined || isBoundTo(volume, claim)) return bind(volume, claim, run);
  return lost('ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly');
}

async function bindNew(claim: PersistentVolumeClaim, run: ReconcileRun): Promise<ReconcileResult> {
  const { volumeName } = claim.spec;
  if (!volumeName) return claim.metadata?.deletionTimestamp === undefined ? findVolume(claim, run) : undefined;
  const volume = run.read(PersistentVolume).get(volumeName);
  if (volume === undefined) return pending(claim, run);
  const reference = keyOfReference(volume);
  const own = `${claim.metadata?.namespace}/${claim.metadata?.name}`;
  if (reference === undefined || isBoundTo(volume, claim)) return bind(volume, claim, run);
  if (reference === own && !volume.spec.claimRef?.uid) return bind(volume, claim, run);
  run.event(
    claim,
    'Warning',
    'FailedBinding',
    `volume ${JSON.stringify(volumeName)} already bound to a different claim.`,
  );
  return pending(claim, run);
}

async function findVolume(claim: PersistentVolumeClaim, run: ReconcileRun): Promise<ReconcileResult> {
  const className = storageClassOf(claim);
  const found = className === '' ? undefined : run.read(StorageClass).get(className);
  const isDelayed = found?.volumeBindingMode === 'WaitForFirstConsumer';
  const selected = annotationOf(claim, annotations.selectedNode);
  const labels = selected === undefined ? {} : run.read(Node).get(selected)?.metadata?.labels;
  const isEligible = (volume: PersistentVolume) =>
    !isDelayed ||
    volume.spec.claimRef !== undefined ||
    (selected !== undefined && volumeReaches(volume, { name: selected, labels: labels ?? {} }));
  const volume = volumesFor(claim, run.read(PersistentVolume).list()).find(isEligible);
  if (volume !== undefined) return bind(volume, claim, run);
  if (isDelayed && selected === undefined) {
    run.event(claim, 'Normal', 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding');
  } else if (className === '') {
    const message = 'no persistent volumes available for this claim and no storage class is set';
    run.event(claim, 'Normal', 'FailedBinding', message);
  } else if (found === undefined) {
    const message = `storageclass.storage.k8s.io ${JSON.stringify(className)} not found`;
    run.event(claim, 'Warning', 'ProvisioningFailed', message);
  } else if (found.provisioner === noProvisioner) {
    // The volumes of the selected node were bound in the meantime. Without the annotation the scheduler selects again.
    if (selected !== undefined) return void (await annotate(claim, { [annotations.selectedNode]: null }, run));
    run.event(claim, 'Warning', 'ProvisioningFailed', `no volume plugin matched name: ${noProvisioner}`);
  } else {
    const { provisioner } = found;
    const why = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator.`;
    const advice =
      'If volume creation is delayed, please verify that the provisioner is running and correctly registered.';
    run.event(claim, 'Normal', 'ExternalProvisioning', `${why} ${advice}`);
    const wanted = { [annotations.provisioner]: provisioner, [annotations.betaProvisioner]: provisioner };
    return pending(await annotate(claim, wanted, run), run);
  }
  return pending(claim, run);
}

async function annotate(
  claim: PersistentVolumeClaim,
  wanted: Readonly<Record<string, string | null>>,
  run: ReconcileRun,
): Promise<PersistentVolumeClaim> {
  if (Object.entries(wanted).every(([key, value]) => (annotationOf(claim, key) ?? null) === value)) return claim;
  const { name = '', namespace = '', uid, resourceVersion } = claim.metadata ?? {};
  const claims = run.client.resource(PersistentVolumeClaim).namespace(namespace);
  return claims.patch(name, 'merge', { metadata: { uid, resourceVersion, annotations: wanted } });
}

async function pending(claim: PersistentVolumeClaim, run: ReconcileRun): Promise<undefined> {
  await patchStatus(run, PersistentVolumeClaim, claim, { phase: 'Pending' });
}

/** Binds the volume before the claim, because the `claimRef` of a volume excludes any other claim. */
async function bind(volume: PersistentVolume, claim: PersistentVolumeClaim, run: ReconcileRun): Promise<undefined> {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = claim.metadata ?? {};
  const volumeName = volume.metadata?.name ?? '';
  if (!isBoundTo(volume, claim)) {
    const { apiVersion, kind } = PersistentVolumeClaim;
    const claimRef = { apiVersion, kind, namespace, name, uid, resourceVersion };
    const isOurs = keyOfReference(volume) === undefined;
    await run.client.resource(PersistentVolume).update({
      ...(isOurs ? withAnnotations(volume, { [annotations.boundByController]: 'yes' }) : volume),
      spec: { ...volume.spec, claimRef },
    });
  }
  let bound = claim;
  if (claim.spec.volumeName !== volumeName || annotationOf(claim, annotations.bindCompleted) === undefined) {
    const isOurs = claim.spec.volumeName !== volumeName;
    const marks = {
      [annotations.bindCompleted]: 'yes',
      ...(isOurs ? { [annotations.boundByController]: 'yes' } : {}),
    };
    bound = await run.client
      .resource(PersistentVolumeClaim)
      .namespace(namespace)
      .update({ ...withAnnotations(claim, marks), spec: { ...claim.spec, volumeName } });
  }
  const { accessModes, capacity } = volume.spec;
  await patchStatus(run, PersistentVolumeClaim, bound, {
    phase: 'Bound',
    ...(accessModes ? { accessModes: [...accessModes] } : {}),
    ...(capacity ? { capacity: { ...capacity } } : {}),
  });
}
