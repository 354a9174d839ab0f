import { type ControllerDefinition, controllerOf, type ReconcileResult, relatedKind } from '@keelson/controller-kit';
import { isStatusError, timeMs } from '@keelson/core';
import { Job, Pod } from '@keelson/kinds';
import { isGone } from '../workload/pod-writes.ts';
import { isManagedByOther } from './job-controller.ts';
import { isTracked, stopTracking } from './job-pods.ts';
import { isFinished } from './job-state.ts';

/** Deletes jobs, with their pods, `ttlSecondsAfterFinished` after their end. */
export const ttlAfterFinishedController: ControllerDefinition<Job> = {
  name: 'ttl-after-finished-controller',
  kind: Job,
  workers: 5,
  reconcile: async (job, run) => {
    const left = timeLeft(job, run.clock.now());
    if (left === undefined || left > 0) return again(left);
    const { name = '', namespace = '' } = job.metadata ?? {};
    const jobs = run.client.resource(Job).namespace(namespace);
    try {
      // The local copy may be outdated: the TTL of the stored job may have been extended.
      const fresh = await jobs.get(name);
      const leftNow = timeLeft(fresh, run.clock.now());
      if (leftNow === undefined || leftNow > 0) return again(leftNow);
      const { uid = '', resourceVersion = '' } = fresh.metadata ?? {};
      await jobs.delete(name, { propagationPolicy: 'Foreground', preconditions: { uid, resourceVersion } });
    } catch (error) {
      if (!isStatusError(error) || !isGone(error)) throw error;
    }
    return undefined;
  },
};

function again(againAfterMs: number | undefined): ReconcileResult {
  return againAfterMs === undefined ? undefined : { againAfterMs };
}

/** Milliseconds until a finished job is deleted; undefined for one that remains. */
function timeLeft(job: Job, now: number): number | undefined {
  const { ttlSecondsAfterFinished } = job.spec;
  if (ttlSecondsAfterFinished === undefined || job.metadata?.deletionTimestamp !== undefined) return undefined;
  const end = job.status?.conditions?.find(
    ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
  );
  const endedAt = timeMs(end?.lastTransitionTime ?? '');
  return endedAt === undefined ? undefined : Math.max(0, endedAt + ttlSecondsAfterFinished * 1000 - now);
}

/**
 * Removes the tracking finalizer from pods whose job is deleted or finished. Such pods could otherwise never be
 * removed.
 */
export const jobOrphanPods: ControllerDefinition<Pod> = {
  name: 'job-orphan-pods',
  kind: Pod,
  workers: 5,
  related: [
    relatedKind(Job, (job, before, read) => {
      // An event without a previous state is about a new or a deleted job. A new job has no pods yet.
      if (before !== undefined && isFinished(before) === isFinished(job)) return [];
      return read(Pod)
        .controlledBy(job)
        .filter(isTracked)
        .map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
    }),
  ],
  reconcile: async (pod, run) => {
    if (!isTracked(pod)) return undefined;
    const owner = controllerOf(pod);
    if (owner !== undefined && (owner.kind !== 'Job' || owner.apiVersion !== Job.apiVersion)) return undefined;
    const job = owner && run.read(Job).get(`${pod.metadata?.namespace}/${owner.name}`);
    const counts =
      job?.metadata?.uid === owner?.uid && job !== undefined && (isManagedByOther(job) || !isFinished(job));
    if (!counts) await stopTracking(run, pod);
    return undefined;
  },
};
