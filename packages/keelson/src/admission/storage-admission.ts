import { storageProtection } from '@keelson/controllers';
import { type AdmissionPlugin, type AdmissionRequest, compareQuantities } from '@keelson/core';
import { type PersistentVolumeClaim, StorageClass } from '@keelson/kinds';
import type { CachedObjects } from './cached-objects.ts';
import { refusal, storageClassAnnotation } from './default-admission.ts';

/**
 * The plugin StorageObjectInUseProtection: new claims and volumes have the finalizer of the controller that protects
 * them while they are in use. Only for controllers of this process: without the controller nothing removes the
 * finalizer, and one that runs elsewhere adds it itself: see
 * docs/adr/0093-admission-that-a-controller-ends-follows-the-controllers-of-the-process.md.
 *
 * @param runs names of the controllers of this process
 */
export function storageProtectionAdmission(runs: readonly string[]): AdmissionPlugin[] {
  return storageProtection
    .filter(({ controller }) => runs.includes(controller.name))
    .map(({ controller: { kind }, finalizer }) => ({
      name: 'StorageObjectInUseProtection',
      resources: [kind.names.plural],
      handles: ({ operation, subresource }) => operation === 'create' && subresource === undefined,
      mutate: ({ object }) => {
        const { finalizers = [] } = object?.metadata ?? {};
        if (object === undefined || finalizers.includes(finalizer)) return;
        object.metadata = { ...object.metadata, finalizers: [...finalizers, finalizer] };
      },
    }));
}

const sizeOf = ({ spec }: PersistentVolumeClaim) => spec.resources?.requests?.['storage'] ?? '0';
const classOf = ({ metadata, spec }: PersistentVolumeClaim) =>
  metadata?.annotations?.[storageClassAnnotation] ?? spec.storageClassName ?? '';

/** The plugin PersistentVolumeClaimResize: only a bound claim whose class allows it may grow. */
export function claimResizeAdmission(objects: CachedObjects): AdmissionPlugin {
  return {
    name: 'PersistentVolumeClaimResize',
    resources: ['persistentvolumeclaims'],
    handles: ({ operation, subresource }) => operation === 'update' && subresource === undefined,
    validate(request) {
      const [claim, old] = [request.object as PersistentVolumeClaim, request.oldObject as PersistentVolumeClaim];
      if (sizeOf(claim) === sizeOf(old) || compareQuantities(sizeOf(claim), sizeOf(old)) <= 0) return undefined;
      if (old.status?.phase !== 'Bound') throw refusal(request, 'Only bound persistent volume claims can be expanded');
      return requireExpandable(classOf(claim) === classOf(old) ? classOf(claim) : '', request, objects);
    },
  };
}

/** @throws StatusError 403 unless claims of this class may grow */
async function requireExpandable(name: string, request: AdmissionRequest, objects: CachedObjects): Promise<void> {
  const found = name === '' ? undefined : await objects.get(StorageClass, name);
  if (found?.allowVolumeExpansion) return;
  throw refusal(
    request,
    'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  );
}
