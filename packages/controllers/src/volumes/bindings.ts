import type { KubeObject } from '@keelson/core';
import type { PersistentVolume, PersistentVolumeClaim } from '@keelson/kinds';

/** Annotations for the communication between controllers, provisioners and the scheduler about claims and volumes. */
export const annotations = {
  bindCompleted: 'pv.kubernetes.io/bind-completed',
  boundByController: 'pv.kubernetes.io/bound-by-controller',
  provisionedBy: 'pv.kubernetes.io/provisioned-by',
  provisioner: 'volume.kubernetes.io/storage-provisioner',
  betaProvisioner: 'volume.beta.kubernetes.io/storage-provisioner',
  selectedNode: 'volume.kubernetes.io/selected-node',
} as const;

export function annotationOf({ metadata }: KubeObject, name: string): string | undefined {
  return metadata?.annotations?.[name];
}

export function withAnnotations<T extends KubeObject>(object: T, added: Readonly<Record<string, string>>): T {
  return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata?.annotations, ...added } } };
}

/** `namespace/name` of the claim that a volume is reserved for. */
export function keyOfReference({ spec }: PersistentVolume): string | undefined {
  return spec.claimRef && `${spec.claimRef.namespace}/${spec.claimRef.name}`;
}

export function isBoundTo({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  return spec.claimRef?.uid !== undefined && spec.claimRef.uid === metadata?.uid;
}
