import { Pod } from '@keelson/kinds';
import { hasEnded } from '../workload/pod-state.ts';
import { replicasOf, resize } from './replica-sets.ts';
import type { Rollout } from './rollout.ts';

/** One step of a rollout that ends all old pods before it starts new ones. */
export async function recreate(rollout: Rollout): Promise<void> {
  const { run, deployment } = rollout;
  const shrinking = rollout.old.filter((set) => replicasOf(set) > 0);
  for (const set of shrinking) await resize(rollout, set, 0);
  const remain = rollout.old.some(
    (set) =>
      (set.status?.replicas ?? 0) > 0 ||
      (set.status?.observedGeneration ?? 0) < (set.metadata?.generation ?? 0) ||
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
