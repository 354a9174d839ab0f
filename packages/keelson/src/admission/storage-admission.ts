import { storageProtection } from '@keelson/controllers';
import type { AdmissionPlugin } from '@keelson/core';

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
