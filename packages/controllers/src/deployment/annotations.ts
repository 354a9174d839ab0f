import type { KubeObject } from '@keelson/core';
import type { Deployment } from '@keelson/kinds';
import { maxSurge } from './strategy.ts';

export const revisionAnnotation = 'deployment.kubernetes.io/revision';
const revisionHistoryAnnotation = 'deployment.kubernetes.io/revision-history';
const desiredReplicasAnnotation = 'deployment.kubernetes.io/desired-replicas';
const maxReplicasAnnotation = 'deployment.kubernetes.io/max-replicas';
export const rollbackToAnnotation = 'deprecated.deployment.rollback.rollbackTo';

/** Annotations that are not copied between a deployment and its replica sets. */
const notCopied: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  revisionAnnotation,
  revisionHistoryAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  rollbackToAnnotation,
]);

/** Maximum length of the list of earlier revisions of a replica set. */
const maxHistoryLength = 2000;

/** The revision of a replica set, an integer of 64 bits; 0 when it has none. */
export function revisionOf(object: KubeObject): bigint {
  return revisionNumber(object.metadata?.annotations?.[revisionAnnotation] ?? '0') ?? 0n;
}

/** Order of ascending revisions. */
export function compareRevisions(a: KubeObject, b: KubeObject): number {
  const difference = revisionOf(a) - revisionOf(b);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

function revisionNumber(text: string): bigint | undefined {
  return /^\d{1,19}$/.test(text) ? BigInt(text) : undefined;
}

/** The size of the deployment when the replica set was scaled last. */
export function recordedReplicas(object: KubeObject): number | undefined {
  return integer(object.metadata?.annotations?.[desiredReplicasAnnotation]);
}

/** The maximum number of pods of the deployment when the replica set was scaled last. */
export function recordedMaxReplicas(object: KubeObject): number | undefined {
  return integer(object.metadata?.annotations?.[maxReplicasAnnotation]);
}

function integer(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * Annotations that record the size of a deployment. When the deployment is scaled later, the share of each replica set
 * is computed from them.
 */
export function replicaAnnotations(deployment: Deployment): Record<string, string> {
  const { replicas = 1 } = deployment.spec;
  return {
    [desiredReplicasAnnotation]: String(replicas),
    [maxReplicasAnnotation]: String(replicas + maxSurge(deployment)),
  };
}

/** The annotations that a deployment copies to its current replica set, and that a rollback copies back. */
export function copiedAnnotations({ metadata }: KubeObject): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata?.annotations ?? {}).filter(([name]) => !notCopied.has(name)));
}

/** The annotations of a deployment after a rollback to a replica set. */
export function rolledBackAnnotations(deployment: Deployment, set: KubeObject): Record<string, string> {
  const own = Object.entries(deployment.metadata?.annotations ?? {});
  return {
    ...Object.fromEntries(own.filter(([name]) => notCopied.has(name) && name !== rollbackToAnnotation)),
    ...copiedAnnotations(set),
  };
}

/**
 * The annotations with a new revision. The previous revision is appended to the history. Nothing changes if the new
 * revision is not greater.
 */
export function withRevision(annotations: Record<string, string>, revision: bigint): Record<string, string> {
  const present = annotations[revisionAnnotation];
  const before = revisionNumber(present ?? '0');
  if (before === undefined || before >= revision) return annotations;
  const updated = { ...annotations, [revisionAnnotation]: String(revision) };
  if (present === undefined) return updated;
  const history = [...(annotations[revisionHistoryAnnotation]?.split(',').filter(Boolean) ?? []), present];
  while (history.length > 1 && history.join(',').length > maxHistoryLength) history.shift();
  return { ...updated, [revisionHistoryAnnotation]: history.join(',') };
}
