import type { Deployment, ReplicaSet } from '@keelson/kinds';
import { recordedMaxReplicas, recordedReplicas } from './annotations.ts';
import { availableOf, byAge, mostPods, mostReplicas, replicasOf, requested, resize } from './replica-sets.ts';
import type { Rollout } from './rollout.ts';
import { isRollingUpdate, maxUnavailable } from './strategy.ts';

/** True when the size of the deployment differs from the size that a replica set with pods has recorded. */
export function isScaled({ deployment, active }: Rollout): boolean {
  if (active.length > 1 && !isRollingUpdate(deployment)) return false;
  return active.some((set) => {
    const recorded = recordedReplicas(set);
    return recorded !== undefined && recorded !== replicasOf(deployment);
  });
}

/**
 * Scales the replica sets to the size of the deployment without a rollout. A single set with pods receives the full
 * size. During a rollout, several sets with pods receive shares in proportion to their sizes.
 */
export async function scale(rollout: Rollout): Promise<void> {
  const { deployment, active, current } = rollout;
  const replicas = replicasOf(deployment);
  if (active.length <= 1) {
    const only = active[0] ?? current ?? rollout.all.at(-1);
    if (only !== undefined) await resize(rollout, only, replicas);
    return;
  }
  if (current !== undefined && isSaturated(deployment, current)) {
    for (const set of rollout.old) if (replicasOf(set) > 0) await resize(rollout, set, 0);
    return;
  }
  if (isRollingUpdate(deployment)) await scaleInProportion(rollout);
}

/** True when the replica set alone has all replicas, and all of them are available. */
function isSaturated(deployment: Deployment, set: ReplicaSet): boolean {
  const replicas = replicasOf(deployment);
  return (
    replicasOf(set) === replicas &&
    recordedReplicas(set) === replicas &&
    (set.status?.availableReplicas ?? 0) === replicas
  );
}

async function scaleInProportion(rollout: Rollout): Promise<void> {
  const { deployment, run, active, all } = rollout;
  const before = requested(active);
  const total = replicasOf(deployment) > 0 ? mostReplicas(deployment) - before : -before;
  // While surplus pods of the sets are being deleted, additional pods would exceed the surge.
  if (total > 0 && mostPods(run, all) !== requested(all)) return;
  const sets = [...active].sort((a, b) => replicasOf(b) - replicasOf(a) || (total > 0 ? byAge(b, a) : byAge(a, b)));
  let added = 0;
  const sizes = sets.map((set) => {
    const share = total === 0 ? 0 : shareOf(deployment, set, total, added);
    added += share;
    return replicasOf(set) + share;
  });
  if (sizes[0] !== undefined) sizes[0] = Math.max(0, sizes[0] + total - added);
  if (total < 0) keepAvailable(deployment, sets, sizes);
  for (const [i, set] of sets.entries()) await resize(rollout, set, sizes[i] ?? 0);
}

/** Moves replicas from sets with unavailable pods to sets that would lose available pods, when too few would remain. */
function keepAvailable(deployment: Deployment, sets: readonly ReplicaSet[], sizes: number[]): void {
  const available = sets.map(availableOf);
  const kept = (i: number) => Math.min(sizes[i] ?? 0, available[i] ?? 0);
  const least = Math.min(replicasOf(deployment) - maxUnavailable(deployment), available.reduce(sum, 0));
  let missing = least - sets.map((_, i) => kept(i)).reduce(sum, 0);
  for (let i = 0; i < sets.length && missing > 0; i += 1) {
    const given = Math.min(missing, (available[i] ?? 0) - kept(i));
    missing -= given;
    sizes[i] = (sizes[i] ?? 0) + given;
    for (let j = 0, owed = given; j < sets.length && owed > 0; j += 1) {
      const taken = Math.min(owed, (sizes[j] ?? 0) - kept(j));
      sizes[j] = (sizes[j] ?? 0) - taken;
      owed -= taken;
    }
  }
}

function sum(a: number, b: number): number {
  return a + b;
}

/** The share of a replica set in a change of the deployment's size, limited by what is not yet distributed. */
function shareOf(deployment: Deployment, set: ReplicaSet, total: number, added: number): number {
  const size = replicasOf(set);
  const rest = total - added;
  if (size === 0 || rest === 0) return 0;
  const fraction = fractionOf(deployment, set, size);
  return total > 0 ? Math.min(fraction, rest) : Math.max(fraction, rest);
}

function fractionOf(deployment: Deployment, set: ReplicaSet, size: number): number {
  if (replicasOf(deployment) === 0) return -size;
  const before = recordedMaxReplicas(set) || deployment.status?.replicas;
  if (!before) return 0;
  return Math.round((size * mostReplicas(deployment)) / before) - size;
}
