import { keyOf } from '@keelson/client';
import {
  type ControllerDefinition,
  claim,
  controllerOf,
  type ReconcileResult,
  type ReconcileRun,
  relatedKind,
} from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { Deployment, Pod, ReplicaSet } from '@keelson/kinds';

import { isObserved } from '../workload/object-status.ts';
import { isActive } from '../workload/pod-state.ts';
import { relatedOrphans, selectorOf } from '../workload/selector.ts';
import { compareRevisions } from './annotations.ts';
import { isComplete, reportPause, reportProgress, reportStatus } from './progress.ts';
import { byAge, replicasOf } from './replica-sets.ts';
import { recreate, rollingUpdate } from './roll-out.ts';
import { requestedRevision, rollBack } from './rollback.ts';
import { Rollout } from './rollout.ts';
import { isScaled, scale } from './scale.ts';
import { revisionHistoryLimit } from './strategy.ts';

/** Updates the pods of deployments step by step, with one replica set for each version of the pod template. */
export const deploymentController: ControllerDefinition<Deployment> = {
  name: 'deployment-controller',
  kind: Deployment,
  workers: 5,
  owns: [ReplicaSet],
  related: [relatedOrphans(ReplicaSet, Deployment, selectorOf), relatedKind(Pod, keysOfRollout)],
  reconcile: reconcile,
};

/**
 * Rolling updates and recreations start new pods only when old pods have ended. The local copy may show the end of a
 * pod later than the status of its replica set, so a change of the pod must trigger a run as well.
 */
function keysOfRollout(pod: Pod, _before: Pod | undefined, read: ReconcileRun['read']): readonly string[] {
  const isPresent = read(Pod).get(keyOf(pod)) !== undefined;
  const setName = controllerOf(pod);
  if (setName?.kind !== 'ReplicaSet') return [];
  const set = read(ReplicaSet).get(`${pod.metadata?.namespace ?? ''}/${setName.name}`);
  const owner = set === undefined ? undefined : controllerOf(set);
  const deployment =
    owner === undefined ? undefined : read(Deployment).get(`${pod.metadata?.namespace ?? ''}/${owner.name}`);
  if (deployment === undefined) return [];
  const waits = deployment.spec.strategy?.type === 'Recreate' || !isPresent || !isActive(pod);
  return waits ? [keyOf(deployment)] : [];
}

async function reconcile(deployment: Deployment, run: ReconcileRun): Promise<ReconcileResult> {
  const selector = selectorOf(deployment);
  const sets = await claim(run, { owner: Deployment, object: deployment, kind: ReplicaSet, selector });
  const rollout = new Rollout(deployment, sets, run);
  try {
    return await step(rollout);
  } catch (error) {
    // A failure to create the replica set is reported as a condition.
    if (!run.signal.aborted && !isStatusError(error, StatusReason.Conflict)) await reportStatus(rollout);
    throw error;
  }
}

async function step(rollout: Rollout): Promise<ReconcileResult> {
  const { deployment } = rollout;
  await rollout.syncRevision();
  if (deployment.metadata?.deletionTimestamp !== undefined) {
    await reportStatus(rollout);
    return undefined;
  }
  reportPause(rollout);
  const revision = requestedRevision(deployment);
  if (!deployment.spec.paused && revision !== undefined) {
    if (await rollout.createCurrent()) await rollBack(rollout, revision);
    else await reportStatus(rollout);
    return undefined;
  }
  if (deployment.spec.paused || isScaled(rollout)) {
    await scale(rollout);
    if (deployment.spec.paused && revision === undefined) await deleteOldSets(rollout);
    await reportStatus(rollout);
    return undefined;
  }
  if (deployment.spec.strategy?.type === 'Recreate') await recreate(rollout);
  else await rollingUpdate(rollout);
  if (isObserved(deployment) && isComplete(deployment, deployment.status ?? {})) await deleteOldSets(rollout);
  return reportProgress(rollout);
}

/** Deletes replica sets without pods, of the lowest revisions, beyond `revisionHistoryLimit`. */
async function deleteOldSets({ run, deployment, old }: Rollout): Promise<void> {
  const limit = revisionHistoryLimit(deployment);
  if (limit === undefined) return;
  const alive = old.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  if (alive.length <= limit) return;
  const sets = run.client.resource(ReplicaSet).namespace(deployment.metadata?.namespace ?? '');
  const oldest = [...alive].sort((a, b) => compareRevisions(a, b) || byAge(a, b));
  for (const set of oldest.slice(0, alive.length - limit)) {
    if (!isObserved(set) || (set.status?.replicas ?? 0) > 0 || replicasOf(set) > 0) continue;
    const { name = '', uid = '' } = set.metadata ?? {};
    try {
      await sets.delete(name, { preconditions: { uid } });
    } catch (error) {
      if (!isStatusError(error, StatusReason.NotFound)) throw error;
    }
  }
}
