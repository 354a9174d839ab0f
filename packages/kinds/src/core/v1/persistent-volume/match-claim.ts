import { labelSelectorOf } from '@keelson/core';
import { compareAmounts } from '../../../validation/quantities.ts';
import { storageClassOf } from '../../../validation/volumes.ts';
import { matchesNodeTerm, type NodeFacts } from '../node/node-rules.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../schema/index.ts';

/** Whether pods of a node can use the volume. */
export function volumeReaches({ spec }: PersistentVolume, node: NodeFacts): boolean {
  const required = spec.nodeAffinity?.required;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesNodeTerm(term, node));
}

/** Whether the volume is reserved for the claim, either manually or by an earlier binding. */
function isReservedFor({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const { namespace, name, uid = '' } = spec.claimRef ?? {};
  return namespace === metadata?.namespace && name === metadata?.name && (uid === '' || uid === metadata?.uid);
}

/**
 * The volumes to which a claim can be bound, best first: only the volume reserved for it or, without one, the free
 * volumes of its class that satisfy the claim, sorted by size. The rules are those of kube-controller-manager.
 */
export function volumesFor(claim: PersistentVolumeClaim, volumes: Iterable<PersistentVolume>): PersistentVolume[] {
  const fits = fitsClaim(claim);
  const free: PersistentVolume[] = [];
  for (const volume of volumes) {
    const isReserved = isReservedFor(volume, claim);
    if (!fits(volume, isReserved)) continue;
    if (isReserved) return [volume];
    if (volume.spec.claimRef === undefined && volume.status?.phase === 'Available') free.push(volume);
  }
  return free.sort((a, b) => compareAmounts(sizeOf(a), sizeOf(b)) ?? 0);
}

const sizeOf = ({ spec }: PersistentVolume): string => spec.capacity?.['storage'] ?? '0';

/**
 * Returns a function that checks whether a volume satisfies a claim. The labels, class and access modes of a reserved
 * volume may differ.
 */
function fitsClaim(claim: PersistentVolumeClaim): (volume: PersistentVolume, isReserved: boolean) => boolean {
  const { accessModes = [], selector, volumeMode = 'Filesystem', resources } = claim.spec;
  const wanted = resources?.requests?.['storage'] ?? '0';
  const labels = selector === undefined ? undefined : labelSelectorOf(selector);
  const className = storageClassOf(claim);
  return (volume, isReserved) => {
    const { metadata, spec } = volume;
    if (metadata?.deletionTimestamp !== undefined) return false;
    if ((compareAmounts(sizeOf(volume), wanted) ?? -1) < 0) return false;
    if ((spec.volumeMode ?? 'Filesystem') !== volumeMode) return false;
    if (isReserved) return true;
    if (storageClassOf(volume) !== className || labels?.matches(metadata?.labels) === false) return false;
    return accessModes.every((mode) => spec.accessModes?.includes(mode));
  };
}
