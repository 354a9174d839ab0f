import type { KubeObject } from '@keelson/core';
import { foregroundFinalizer, orphanFinalizer } from './object-graph.ts';

/** The metadata without references to these owners; undefined when nothing changes. */
export function withoutOwners(object: KubeObject, uids: ReadonlySet<string>): Record<string, unknown> | undefined {
  const owners = object.metadata?.ownerReferences ?? [];
  const kept = owners.filter((owner) => !uids.has(owner.uid));
  return kept.length === owners.length ? undefined : { ownerReferences: kept.length === 0 ? null : kept };
}

/** The metadata in which the owner is not blocked; undefined when nothing changes. */
export function unblocked(object: KubeObject, owner: string): Record<string, unknown> | undefined {
  const owners = object.metadata?.ownerReferences ?? [];
  if (!owners.some(({ uid, blockOwnerDeletion }) => uid === owner && blockOwnerDeletion === true)) return undefined;
  return {
    ownerReferences: owners.map((entry) => (entry.uid === owner ? { ...entry, blockOwnerDeletion: false } : entry)),
  };
}

/**
 * The propagation policy for a delete: Foreground if `foreground` is set, otherwise the policy that the finalizers of
 * the object state, or Background.
 */
export function policyFor(
  finalizers: readonly string[],
  foreground: boolean,
): { propagationPolicy: 'Foreground' | 'Orphan' | 'Background' } {
  if (foreground || finalizers.includes(foregroundFinalizer)) return { propagationPolicy: 'Foreground' };
  return { propagationPolicy: finalizers.includes(orphanFinalizer) ? 'Orphan' : 'Background' };
}
