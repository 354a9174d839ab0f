import { Pod, type ReplicaSet } from '@keelson/kinds';
import { isObserved } from '../workload/object-status.ts';
import { hasEnded } from '../workload/pod-state.ts';
import { availableOf, mostPods, mostReplicas, replicasOf, requested, resize } from './replica-sets.ts';
import type { Rollout } from './rollout.ts';
import { maxUnavailable } from './strategy.ts';

/** One step of a rolling update: the replica set of the present template grows, or else the others shrink. */
export async function rollingUpdate(rollout: Rollout): Promise<void> {
  if (!(await rollout.createCurrent())) return;
  const { current } = rollout;
  if (current === undefined || (await growCurrent(rollout, current))) return;
  await shrinkOld(rollout, current);
}

async function growCurrent(rollout: Rollout, current: ReplicaSet): Promise<boolean> {
  const { deployment, run, all } = rollout;
  const replicas = replicasOf(deployment);
  const present = replicasOf(current);
  if (present >= replicas) return resize(rollout, current, replicas);
  const pods = mostPods(run, all);
  if (pods === undefined) return false;
  const growth = Math.min(mostReplicas(deployment) - pods, replicas - present);
  return growth > 0 && resize(rollout, current, present + growth);
}

/**
 * Shrinks the old replica sets while enough pods remain available. Unavailable pods, for example of a failed rollout,
 * are removed first.
 */
async function shrinkOld(rollout: Rollout, current: ReplicaSet): Promise<void> {
  const { deployment, old, all } = rollout;
  const leastAvailable = replicasOf(deployment) - maxUnavailable(deployment);
  const starting = replicasOf(current) - availableOf(current);
  let surplus = requested(all) - leastAvailable - starting;
  for (const set of old) {
    const unavailable = Math.min(surplus, replicasOf(set) - availableOf(set));
    if (unavailable <= 0) continue;
    surplus -= unavailable;
    await resize(rollout, set, replicasOf(set) - unavailable);
  }
  const available = rollout.all.reduce((sum, set) => sum + availableOf(set), 0);
  let shrinkable = available - leastAvailable;
  for (const set of rollout.old) {
    const removed = Math.min(shrinkable, replicasOf(set));
    if (removed <= 0) continue;
    shrinkable -= removed;
    await resize(rollout, set, replicasOf(set) - removed);
  }
}

/** One step of a rollout that ends all old pods before it starts new ones. */
export async function recreate(rollout: Rollout): Promise<void> {
  const { run, deployment } = rollout;
  const shrinking = rollout.old.filter((set) => replicasOf(set) > 0);
  for (const set of shrinking) await resize(rollout, set, 0);
  const remain = rollout.old.some(
    (set) =>
      (set.status?.replicas ?? 0) > 0 ||
      !isObserved(set) ||
      run
        .read(Pod)
        .controlledBy(set)
        .some((pod) => !hasEnded(pod)),
  );
  if (shrinking.length > 0 || remain) return;
  if (!(await rollout.createCurrent())) return;
  const { current } = rollout;
  if (current !== undefined) await resize(rollout, current, replicasOf(deployment));
}
