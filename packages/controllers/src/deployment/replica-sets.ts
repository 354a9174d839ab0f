import { ownerReference, type ReconcileRun } from '@keelson/controller-kit';
import { timeMs } from '@keelson/core';
import { Deployment, Pod, ReplicaSet } from '@keelson/kinds';
import { isObserved } from '../workload/object-status.ts';
import { isActive } from '../workload/pod-state.ts';
import { shortHash, templateText } from '../workload/template.ts';
import { copiedAnnotations, replicaAnnotations, withRevision } from './annotations.ts';
import type { Rollout } from './rollout.ts';
import { maxSurge } from './strategy.ts';

export const hashLabel = 'pod-template-hash';
/** Maximum length of an object name. A replica set is named after its deployment and a hash. */
const maxNameLength = 253;

/** The sum of `spec.replicas` of the replica sets. */
export function requested(sets: readonly ReplicaSet[]): number {
  return sets.reduce((sum, set) => sum + replicasOf(set), 0);
}

export function replicasOf(object: { readonly spec: { readonly replicas?: number } }): number {
  return object.spec.replicas ?? 1;
}

/** The number of available pods of a replica set, limited by its requested size. */
export function availableOf(set: ReplicaSet): number {
  return Math.min(replicasOf(set), set.status?.availableReplicas ?? 0);
}

/**
 * Upper limit of the number of pods that the sets have or will have created: undefined while a set has not been
 * reconciled since its last change of size, because creates for its previous size may be in progress.
 */
export function mostPods(run: ReconcileRun, sets: readonly ReplicaSet[]): number | undefined {
  let sum = 0;
  for (const set of sets) {
    if (!isObserved(set)) return undefined;
    sum += Math.max(replicasOf(set), run.read(Pod).controlledBy(set).filter(isActive).length);
  }
  return sum;
}

export function byAge(a: ReplicaSet, b: ReplicaSet): number {
  const difference = createdAt(a) - createdAt(b);
  if (difference !== 0) return difference;
  return (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}

function createdAt({ metadata }: ReplicaSet): number {
  return timeMs(metadata?.creationTimestamp ?? '') ?? 0;
}

export function isSameTemplate(a: Deployment | ReplicaSet, b: Deployment | ReplicaSet): boolean {
  return textOfTemplate(a) === textOfTemplate(b);
}

function textOfTemplate({ spec }: Deployment | ReplicaSet): string {
  return spec.template === undefined ? '' : templateText(spec.template, hashLabel);
}

/**
 * Changes the size of a replica set, and its record of the size of the deployment. Reports the change of size as an
 * event of the deployment.
 *
 * @returns true when the size has changed.
 */
export async function resize(rollout: Rollout, set: ReplicaSet, replicas: number): Promise<boolean> {
  const { deployment, run } = rollout;
  const before = replicasOf(set);
  const annotations = { ...set.metadata?.annotations, ...replicaAnnotations(deployment) };
  const recorded = Object.entries(annotations).every(([name, value]) => set.metadata?.annotations?.[name] === value);
  if (before === replicas && recorded) return false;
  rollout.replace(
    await update(run, { ...set, metadata: { ...set.metadata, annotations }, spec: { ...set.spec, replicas } }),
  );
  if (before === replicas) return false;
  const direction = before < replicas ? 'up' : 'down';
  const message = `Scaled ${direction} replica set ${set.metadata?.name} from ${before} to ${replicas}`;
  run.event(deployment, 'Normal', 'ScalingReplicaSet', message);
  return true;
}

async function update(run: ReconcileRun, set: ReplicaSet): Promise<ReplicaSet> {
  return run.client
    .resource(ReplicaSet)
    .namespace(set.metadata?.namespace ?? '')
    .update(set);
}

/** Gives the replica set of the present template the greatest revision, and the annotations of the deployment. */
export async function recordRevision(rollout: Rollout, set: ReplicaSet, revision: bigint): Promise<void> {
  const { deployment, run } = rollout;
  const before = set.metadata?.annotations ?? {};
  const annotations = withRevision({ ...before, ...copiedAnnotations(deployment) }, revision);
  const minReadySeconds = deployment.spec.minReadySeconds ?? 0;
  const same = Object.entries(annotations).every(([name, value]) => before[name] === value);
  if (same && minReadySeconds === (set.spec.minReadySeconds ?? 0)) return;
  const spec = { ...set.spec, minReadySeconds };
  rollout.replace(await update(run, { ...set, metadata: { ...set.metadata, annotations }, spec }));
}

/** The replica set of the present template. Its name follows from the template, so that it is created only once. */
export function newReplicaSet(deployment: Deployment, replicas: number, revision: bigint): ReplicaSet {
  const { name = '' } = deployment.metadata ?? {};
  const { template, selector, minReadySeconds } = deployment.spec;
  const hash = shortHash(`${templateText(template, hashLabel)}${deployment.status?.collisionCount ?? ''}`);
  const labels = { ...template.metadata?.labels, [hashLabel]: hash };
  const annotations = { ...copiedAnnotations(deployment), ...replicaAnnotations(deployment) };
  return {
    metadata: {
      name: `${name.slice(0, maxNameLength - 1 - hash.length)}-${hash}`,
      labels,
      annotations: withRevision(annotations, revision),
      ownerReferences: [ownerReference(Deployment, deployment)],
    },
    spec: {
      replicas,
      ...(minReadySeconds ? { minReadySeconds } : {}),
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [hashLabel]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  };
}

/** The most pods that a deployment may have during a rollout. */
export function mostReplicas(deployment: Deployment): number {
  return replicasOf(deployment) + maxSurge(deployment);
}
