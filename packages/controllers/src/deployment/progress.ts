import type { ReconcileResult } from '@keelson/controller-kit';
import { timeMs } from '@keelson/core';
import { type appsV1, Deployment, type ReplicaSet } from '@keelson/kinds';
import { writeStatus } from '../workload/object-status.ts';
import { replicasOf, requested } from './replica-sets.ts';
import type { Rollout } from './rollout.ts';
import { maxUnavailable, progressDeadlineSeconds } from './strategy.ts';

type Counts = Pick<
  appsV1.DeploymentStatus,
  'replicas' | 'updatedReplicas' | 'readyReplicas' | 'availableReplicas' | 'unavailableReplicas' | 'terminatingReplicas'
>;

/** Writes the status of a deployment whose progress is not measured: it is paused, scaled or being deleted. */
export async function reportStatus(rollout: Rollout): Promise<void> {
  const counts = countsOf(rollout);
  setAvailable(rollout, counts);
  await write(rollout, counts);
}

/** Writes the status during and after a rollout, and returns when its progress deadline is checked next. */
export async function reportProgress(rollout: Rollout): Promise<ReconcileResult> {
  const counts = countsOf(rollout);
  setAvailable(rollout, counts);
  setProgressing(rollout, counts);
  setReplicaFailure(rollout);
  await write(rollout, counts);
  return nextCheck(rollout, counts);
}

/**
 * Renews the condition Progressing of a deployment that was paused or resumed, so that the pause does not count as a
 * lack of progress.
 */
export function reportPause(rollout: Rollout): void {
  const { deployment } = rollout;
  const reason = rollout.condition('Progressing')?.reason;
  if (progressDeadlineSeconds(deployment) === undefined || reason === 'ProgressDeadlineExceeded') return;
  const paused = deployment.spec.paused ?? false;
  if (paused && reason !== 'DeploymentPaused')
    rollout.setCondition('Progressing', 'Unknown', 'DeploymentPaused', 'Deployment is paused');
  else if (!paused && reason === 'DeploymentPaused')
    rollout.setCondition('Progressing', 'Unknown', 'DeploymentResumed', 'Deployment is resumed');
}

/** True when all replicas are of the present template and available, and no other pods remain. */
export function isComplete(deployment: Deployment, counts: Counts): boolean {
  const replicas = replicasOf(deployment);
  return (
    (counts.updatedReplicas ?? 0) === replicas &&
    (counts.replicas ?? 0) === replicas &&
    (counts.availableReplicas ?? 0) === replicas
  );
}

function countsOf({ all, current }: Rollout): Counts {
  const sum = (count: (status: appsV1.ReplicaSetStatus) => number | undefined) =>
    all.reduce((total, { status }) => total + ((status && count(status)) ?? 0), 0);
  const availableReplicas = sum((status) => status.availableReplicas);
  return {
    replicas: sum((status) => status.replicas),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: sum((status) => status.readyReplicas),
    availableReplicas,
    unavailableReplicas: Math.max(0, requested(all) - availableReplicas),
    terminatingReplicas: sum((status) => status.terminatingReplicas),
  };
}

function setAvailable(rollout: Rollout, { availableReplicas = 0 }: Counts): void {
  const { deployment } = rollout;
  if (availableReplicas >= replicasOf(deployment) - maxUnavailable(deployment)) {
    const message = 'Deployment has minimum availability.';
    rollout.setCondition('Available', 'True', 'MinimumReplicasAvailable', message);
  } else {
    const message = 'Deployment does not have minimum availability.';
    rollout.setCondition('Available', 'False', 'MinimumReplicasUnavailable', message);
  }
}

function setProgressing(rollout: Rollout, counts: Counts): void {
  const { deployment, current } = rollout;
  if (progressDeadlineSeconds(deployment) === undefined) {
    rollout.removeCondition('Progressing');
    return;
  }
  const present = rollout.condition('Progressing');
  if (counts.replicas === counts.updatedReplicas && present?.reason === 'NewReplicaSetAvailable') return;
  const subject =
    current === undefined ? `Deployment "${deployment.metadata?.name}"` : `ReplicaSet "${current.metadata?.name}"`;
  if (isComplete(deployment, counts)) {
    const message = `${subject} has successfully progressed.`;
    rollout.setCondition('Progressing', 'True', 'NewReplicaSetAvailable', message);
  } else if (hasProgressed(deployment.status ?? {}, counts)) {
    rollout.renewCondition('Progressing', 'True', 'ReplicaSetUpdated', `${subject} is progressing.`);
  } else if (hasTimedOut(rollout)) {
    const message = `${subject} has timed out progressing.`;
    rollout.setCondition('Progressing', 'False', 'ProgressDeadlineExceeded', message);
  }
}

/** True when there are more new pods, fewer old ones, or more ready or available ones than in the last status. */
function hasProgressed(before: Counts, now: Counts): boolean {
  const old = ({ replicas = 0, updatedReplicas = 0 }: Counts) => replicas - updatedReplicas;
  return (
    (now.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(now) < old(before) ||
    (now.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

function hasTimedOut(rollout: Rollout): boolean {
  const present = rollout.condition('Progressing');
  if (present === undefined || present.reason === 'NewReplicaSetAvailable') return false;
  return present.reason === 'ProgressDeadlineExceeded' || (untilDeadline(rollout) ?? 0) < 0;
}

/** Milliseconds from now to the progress deadline. */
function untilDeadline(rollout: Rollout): number | undefined {
  const seconds = progressDeadlineSeconds(rollout.deployment);
  const since = timeMs(rollout.condition('Progressing')?.lastUpdateTime ?? '');
  if (seconds === undefined || since === undefined) return undefined;
  return since + seconds * 1000 - rollout.run.clock.now();
}

function nextCheck(rollout: Rollout, counts: Counts): ReconcileResult {
  const wait = untilDeadline(rollout);
  if (wait === undefined || isComplete(rollout.deployment, counts)) return undefined;
  if (rollout.condition('Progressing')?.reason === 'ProgressDeadlineExceeded') return undefined;
  return { againAfterMs: Math.max(wait, 0) + 1000 };
}

/** Copies the condition ReplicaFailure of the present replica set, or else of another one. */
function setReplicaFailure(rollout: Rollout): void {
  const failureOf = (set: ReplicaSet | undefined) =>
    set?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure');
  const failure = failureOf(rollout.current) ?? rollout.all.map(failureOf).find((found) => found !== undefined);
  if (failure === undefined) {
    rollout.removeCondition('ReplicaFailure');
    return;
  }
  const present = rollout.condition('ReplicaFailure');
  if (present?.status === failure.status && present.reason === failure.reason) return;
  const time = failure.lastTransitionTime;
  rollout.putCondition({ ...failure, ...(time === undefined ? {} : { lastUpdateTime: time }) });
}

async function write(rollout: Rollout, counts: Counts): Promise<void> {
  const { run, deployment, conditions, collisionCount, annotations } = rollout;
  const { generation } = deployment.metadata ?? {};
  const status: appsV1.DeploymentStatus = {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...Object.fromEntries(
      Object.entries(counts).filter(([name, count]) => count > 0 || name === 'terminatingReplicas'),
    ),
    ...(conditions.length === 0 ? {} : { conditions: [...conditions] }),
    ...(collisionCount === undefined ? {} : { collisionCount }),
  };
  await writeStatus(run, Deployment, deployment, status, annotations);
}
