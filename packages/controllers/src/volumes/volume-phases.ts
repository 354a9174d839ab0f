import {
  type ControllerDefinition,
  patchStatus,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { PersistentVolume, PersistentVolumeClaim } from '@keelson/kinds';
import { annotationOf, annotations, keyOfReference } from './bindings.ts';

/**
 * Sets the phases of volumes, and frees volumes whose claim is bound to another volume. With the reclaim policy Delete,
 * the provisioner that created a released volume deletes it. A released volume that must be recycled, or deleted
 * without a provisioner, gets the phase Failed.
 */
export const volumePhases: ControllerDefinition<PersistentVolume> = {
  name: 'persistentvolume-phase-controller',
  eventSource: 'persistentvolume-controller',
  kind: PersistentVolume,
  related: [
    relatedKind(PersistentVolumeClaim, ({ metadata, spec }, before, read) => [
      ...(spec.volumeName ? [spec.volumeName] : []),
      // A volume may be reserved for a claim that does not name the volume. Such volumes are looked up only for new and
      // deleted claims, which are few.
      ...(before === undefined
        ? read(PersistentVolume)
            .by(claimKeys, `${metadata?.namespace}/${metadata?.name}`)
            .map((volume) => volume.metadata?.name ?? '')
        : []),
    ]),
  ],
  reconcile,
};

function claimKeys(volume: PersistentVolume): readonly string[] {
  const key = keyOfReference(volume);
  return key === undefined ? [] : [key];
}

async function reconcile(volume: PersistentVolume, run: ReconcileRun): Promise<ReconcileResult> {
  const { claimRef } = volume.spec;
  const phase = (name: string) =>
    patchStatus(run, PersistentVolume, volume, { phase: name, message: undefined, reason: undefined });
  if (claimRef === undefined || !claimRef.uid) return void (await phase('Available'));
  const claim = await claimOf(volume, run);
  if (claim === undefined) {
    const current = volume.status?.phase;
    if (current !== 'Released' && current !== 'Failed') return void (await phase('Released'));
    return reclaim(volume, run);
  }
  if (claim.spec.volumeName === volume.metadata?.name) return void (await phase('Bound'));
  if (!claim.spec.volumeName) return undefined;
  // The claim is bound to another volume. A volume that was provisioned for the claim is not needed any more.
  const isMade = annotationOf(volume, annotations.provisionedBy) !== undefined;
  if (isMade && volume.spec.persistentVolumeReclaimPolicy === 'Delete') return void (await phase('Released'));
  return unbind(volume, run);
}

/** The claim with the uid in `claimRef`. Its absence is verified with the server, because its volume may be deleted. */
async function claimOf(volume: PersistentVolume, run: ReconcileRun): Promise<PersistentVolumeClaim | undefined> {
  const { uid, name = '', namespace = '' } = volume.spec.claimRef ?? {};
  const known = run.read(PersistentVolumeClaim).get(`${namespace}/${name}`);
  if (known?.metadata?.uid === uid) return known;
  try {
    const claim = await run.client.resource(PersistentVolumeClaim).namespace(namespace).get(name);
    return claim.metadata?.uid === uid ? claim : undefined;
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return undefined;
    throw error;
  }
}

async function unbind(volume: PersistentVolume, run: ReconcileRun): Promise<undefined> {
  const { claimRef, ...spec } = volume.spec;
  const isOurs = annotationOf(volume, annotations.boundByController) !== undefined;
  const { [annotations.boundByController]: _mark, ...rest } = volume.metadata?.annotations ?? {};
  const { uid: _uid, resourceVersion: _version, ...reserved } = claimRef ?? {};
  await run.client.resource(PersistentVolume).update({
    ...volume,
    metadata: { ...volume.metadata, annotations: rest },
    spec: isOurs ? spec : { ...spec, claimRef: reserved },
  });
}

async function reclaim(volume: PersistentVolume, run: ReconcileRun): Promise<undefined> {
  const { persistentVolumeReclaimPolicy: policy = 'Retain' } = volume.spec;
  if (policy === 'Retain' || volume.status?.phase === 'Failed') return;
  if (policy === 'Delete' && annotationOf(volume, annotations.provisionedBy) !== undefined) return;
  const [reason, message] =
    policy === 'Delete'
      ? ['VolumeFailedDelete', 'error getting deleter volume plugin for volume: no deletable volume plugin matched']
      : ['VolumeFailedRecycle', 'No recycler plugin found for the volume!'];
  run.event(volume, 'Warning', reason, message);
  await patchStatus(run, PersistentVolume, volume, { phase: 'Failed', message });
}
