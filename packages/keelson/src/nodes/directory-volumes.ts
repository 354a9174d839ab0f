import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { keyOf } from '@keelson/client';
import { type AnyController, type ControllerDefinition, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { PersistentVolume, PersistentVolumeClaim, StorageClass, storageClassOf } from '@keelson/kinds';

/** The provisioner that storage classes name. */
export const provisionerName = 'keelson.dev/directory';

const requestedOf = 'volume.kubernetes.io/storage-provisioner';
const selectedNode = 'volume.kubernetes.io/selected-node';
const provisionedBy = 'pv.kubernetes.io/provisioned-by';
const hostnameLabel = 'kubernetes.io/hostname';

export interface DirectoryProvisionerOptions {
  /** Absolute path of the directory that contains the volumes. */
  readonly directory: string;
  /** Names of the nodes that have access to this directory. */
  readonly nodeNames: readonly string[];
}

/**
 * Provides a directory as the volume of each claim of a class with this provisioner. As for external provisioners,
 * controllers first annotate the claim. The directory is created when a node of this process was selected. A released
 * volume with the policy Delete is removed together with its directory. Sizes are not enforced.
 */
export function directoryProvisioner(options: DirectoryProvisionerOptions): readonly AnyController[] {
  const provision: ControllerDefinition<PersistentVolumeClaim> = {
    name: 'directory-provisioner',
    kind: PersistentVolumeClaim,
    related: [
      relatedKind(StorageClass, ({ metadata }, _before, read) =>
        read(PersistentVolumeClaim)
          .list()
          .filter((claim) => !claim.spec.volumeName && storageClassOf(claim) === metadata?.name)
          .map(keyOf),
      ),
    ],
    workers: 4,
    reconcile: async (claim, run) => {
      const { annotations = {}, deletionTimestamp, uid = '' } = claim.metadata ?? {};
      if (claim.spec.volumeName || deletionTimestamp !== undefined) return undefined;
      if (annotations[requestedOf] !== provisionerName) return undefined;
      const node = annotations[selectedNode];
      const storageClass = run.read(StorageClass).get(storageClassOf(claim));
      if (storageClass === undefined) return undefined;
      const isSelected = node !== undefined && options.nodeNames.includes(node);
      if (storageClass.volumeBindingMode === 'WaitForFirstConsumer' && !isSelected) return refuse(claim, run);
      if (claim.spec.volumeMode === 'Block') {
        run.event(claim, 'Warning', 'ProvisioningFailed', `${provisionerName} does not provide block volumes`);
        return undefined;
      }
      const name = `pvc-${uid}`;
      const path = join(options.directory, name);
      await mkdir(path, { recursive: true, mode: 0o755 });
      // Containers may run as any user.
      await chmod(path, 0o777);
      try {
        await run.client.resource(PersistentVolume).create(volumeOf(claim, storageClass, path, options.nodeNames));
      } catch (error) {
        if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
      }
      run.event(claim, 'Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${name}`);
      return undefined;
    },
  };
  const remove: ControllerDefinition<PersistentVolume> = {
    name: 'directory-remover',
    kind: PersistentVolume,
    reconcile: async ({ metadata = {}, spec, status }, run) => {
      const { name = '', uid = '', resourceVersion = '', deletionTimestamp } = metadata;
      const path = join(options.directory, name);
      const isOwn = metadata.annotations?.[provisionedBy] === provisionerName && spec.hostPath?.path === path;
      if (!isOwn || status?.phase !== 'Released' || spec.persistentVolumeReclaimPolicy !== 'Delete') return undefined;
      await rm(path, { recursive: true, force: true });
      if (deletionTimestamp !== undefined) return undefined;
      try {
        await run.client.resource(PersistentVolume).delete(name, { preconditions: { uid, resourceVersion } });
      } catch (error) {
        if (!isStatusError(error, StatusReason.NotFound)) throw error;
      }
      return undefined;
    },
  };
  return [provision, remove];
}

/** Removes the selection of a node that has none of these directories, so that the scheduler selects another one. */
async function refuse(claim: PersistentVolumeClaim, run: ReconcileRun): Promise<undefined> {
  const { name = '', namespace = '', uid, resourceVersion, annotations = {} } = claim.metadata ?? {};
  const node = annotations[selectedNode];
  if (node === undefined) return;
  run.event(claim, 'Warning', 'ProvisioningFailed', `node ${node} has no volumes of ${provisionerName}`);
  await run.client
    .resource(PersistentVolumeClaim)
    .namespace(namespace)
    .patch(name, 'merge', { metadata: { uid, resourceVersion, annotations: { [selectedNode]: null } } });
}

function volumeOf(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  path: string,
  nodeNames: readonly string[],
): PersistentVolume {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = claim.metadata ?? {};
  const { apiVersion, kind } = PersistentVolumeClaim;
  const matchExpressions = [{ key: hostnameLabel, operator: 'In', values: [...nodeNames] }];
  return {
    metadata: { name: `pvc-${uid}`, annotations: { [provisionedBy]: provisionerName } },
    spec: {
      capacity: { storage: claim.spec.resources?.requests?.['storage'] ?? '0' },
      accessModes: [...(claim.spec.accessModes ?? [])],
      claimRef: { apiVersion, kind, namespace, name, uid, resourceVersion },
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      storageClassName: storageClass.metadata?.name ?? '',
      volumeMode: 'Filesystem',
      hostPath: { path, type: 'DirectoryOrCreate' },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  };
}
