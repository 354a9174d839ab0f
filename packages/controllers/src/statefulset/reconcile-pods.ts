import type { ReconcileRun } from '@keelson/controller-kit';
import { isStatusError, resolveIntOrPercent, StatusReason } from '@keelson/core';
import { Pod, type StatefulSet } from '@keelson/kinds';
import { hasEnded } from '../workload/pod-state.ts';
import { inParallel, isGone, slowStart, textOf } from '../workload/pod-writes.ts';
import {
  firstOrdinal,
  isHealthy,
  isRunningAndReady,
  isTerminating,
  missingIdentity,
  ordinalOf,
  podRevision,
} from './stateful-pods.ts';
import { createClaims, hasStaleClaim, retainClaims } from './volume-claims.ts';

/** The input of one reconcile run for a StatefulSet. */
export interface StatefulRun {
  readonly run: ReconcileRun;
  readonly set: StatefulSet;
  readonly pods: readonly Pod[];
  /** Name of the revision of the present template. */
  readonly updateRevision: string;
  /** Returns the pod object to create for an ordinal. */
  readonly newPod: (ordinal: number) => Pod;
  /** Collects the pods that this run has deleted. */
  readonly deleted: Set<Pod>;
}

/**
 * Creates missing pods of a StatefulSet, removes pods beyond its size, and replaces pods of old revisions. With the
 * policy OrderedReady, each step waits until the previous steps are complete.
 */
export async function reconcilePods(options: StatefulRun): Promise<void> {
  const { set, pods } = options;
  const start = firstOrdinal(set);
  const { replicas = 1 } = set.spec;
  const ordered = set.spec.podManagementPolicy !== 'Parallel';
  const present = new Map(pods.map((pod) => [ordinalOf(pod, set), pod]));
  const ordinals = Array.from({ length: replicas }, (_, i) => start + i);
  const condemned = pods
    .filter((pod) => !isInRange(pod, set))
    .sort((a, b) => (ordinalOf(b, set) ?? 0) - (ordinalOf(a, set) ?? 0));
  await retainAll(options, condemned);
  if (ordered) {
    for (const ordinal of ordinals) if (!(await completeReplica(options, ordinal, present.get(ordinal)))) return;
    if (!(await removeNext(options, ordinals, present, condemned))) return;
  } else {
    await slowStart(ordinals, async (ordinal) => void (await completeReplica(options, ordinal, present.get(ordinal))));
    await inParallel(condemned, (pod) => (isTerminating(pod) ? Promise.resolve() : remove(options, pod)));
  }
  if (set.spec.updateStrategy?.type !== 'OnDelete') await replaceOld(options, ordinals, present);
}

function isInRange(pod: Pod, set: StatefulSet): boolean {
  const index = (ordinalOf(pod, set) ?? -1) - firstOrdinal(set);
  return index >= 0 && index < (set.spec.replicas ?? 1);
}

async function retainAll({ run, set, pods }: StatefulRun, condemned: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    const ordinal = ordinalOf(pod, set) ?? 0;
    await retainClaims({ run, set, pod, ordinal, condemned: condemned.includes(pod) });
  }
}

/**
 * Creates or repairs the pod of an ordinal.
 *
 * @returns true when the pod is healthy, so that the run may continue with the next ordinal.
 */
async function completeReplica(options: StatefulRun, ordinal: number, pod: Pod | undefined): Promise<boolean> {
  const { run, set } = options;
  if (pod === undefined) {
    await create(options, ordinal);
    return false;
  }
  if (hasEnded(pod)) {
    if (!isTerminating(pod)) await remove(options, pod);
    return false;
  }
  if (isTerminating(pod)) return false;
  if (pod.status?.phase === 'Pending') await createClaims({ run, set, pod, ordinal });
  if (!isHealthy(pod, set, run.clock.now())) return false;
  const labels = missingIdentity(pod, ordinal);
  if (labels !== undefined) {
    const { name = '', namespace = '', uid } = pod.metadata ?? {};
    const patch = { metadata: { uid, labels } };
    await recorded(options, 'update', pod, () =>
      run.client.resource(Pod).namespace(namespace).patch(name, 'merge', patch),
    );
  }
  return true;
}

async function create(options: StatefulRun, ordinal: number): Promise<void> {
  const { run, set, newPod } = options;
  const pod = newPod(ordinal);
  const member = { run, set, pod, ordinal };
  if (hasStaleClaim(member)) throw new Error(`the claims of pod ${pod.metadata?.name} are being deleted`);
  // The deletion of a pod of another owner leads to no run of this set, so that the failed run must be repeated.
  await recorded(options, 'create', pod, async () => {
    await createClaims(member);
    await run.client
      .resource(Pod)
      .namespace(set.metadata?.namespace ?? '')
      .create(pod);
  });
}

/**
 * Deletes the pod of the highest ordinal beyond the size of the set, when all other pods are healthy.
 *
 * @returns true when no pod beyond the size remains.
 */
async function removeNext(
  options: StatefulRun,
  ordinals: readonly number[],
  present: ReadonlyMap<number | undefined, Pod>,
  condemned: readonly Pod[],
): Promise<boolean> {
  const { run, set } = options;
  const [pod] = condemned;
  if (pod === undefined) return true;
  if (isTerminating(pod)) return false;
  const now = run.clock.now();
  const members = [...ordinals.map((ordinal) => present.get(ordinal)), ...[...condemned].reverse()];
  const firstUnhealthy = members.find((member) => member === undefined || !isHealthy(member, set, now));
  if (firstUnhealthy === pod || (isRunningAndReady(pod) && isHealthy(pod, set, now))) await remove(options, pod);
  return false;
}

/**
 * Deletes pods of old revisions, from the highest ordinal down to the partition. At most `maxUnavailable` pods become
 * unavailable. Old pods that are unavailable already are always deleted.
 */
async function replaceOld(
  options: StatefulRun,
  ordinals: readonly number[],
  present: ReadonlyMap<number | undefined, Pod>,
): Promise<void> {
  const { run, set, updateRevision, deleted } = options;
  const now = run.clock.now();
  const { partition = 0, maxUnavailable = 1 } = set.spec.updateStrategy?.rollingUpdate ?? {};
  const most = Math.max(1, resolveIntOrPercent(maxUnavailable, ordinals.length, 'down') ?? 1);
  const isUnavailable = (pod: Pod | undefined) => pod === undefined || deleted.has(pod) || !isHealthy(pod, set, now);
  let budget = most - ordinals.filter((ordinal) => isUnavailable(present.get(ordinal))).length;
  for (const ordinal of ordinals.slice(partition).reverse()) {
    const pod = present.get(ordinal);
    if (pod === undefined || isTerminating(pod) || deleted.has(pod) || podRevision(pod) === updateRevision) continue;
    if (!isUnavailable(pod)) {
      if (budget <= 0) return;
      budget -= 1;
    }
    await remove(options, pod);
  }
}

async function remove(options: StatefulRun, pod: Pod): Promise<void> {
  const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
  const pods = options.run.client.resource(Pod).namespace(namespace);
  try {
    await recorded(options, 'delete', pod, () => pods.delete(name, { preconditions: { uid } }));
  } catch (error) {
    if (!isGone(error)) throw error;
  }
  options.deleted.add(pod);
}

/** Calls `write` for a pod and records the event for its result, such as SuccessfulCreate or FailedDelete. */
async function recorded(
  { run, set }: StatefulRun,
  verb: 'create' | 'update' | 'delete',
  pod: Pod,
  write: () => Promise<unknown>,
): Promise<void> {
  const suffix = `${verb.charAt(0).toUpperCase()}${verb.slice(1)}`;
  const subject = `${verb} Pod ${pod.metadata?.name} in StatefulSet ${set.metadata?.name}`;
  try {
    await write();
    run.event(set, 'Normal', `Successful${suffix}`, `${subject} successful`);
  } catch (error) {
    const expected = isStatusError(error, StatusReason.AlreadyExists) || (verb === 'delete' && isGone(error));
    if (!expected && !run.signal.aborted)
      run.event(set, 'Warning', `Failed${suffix}`, `${subject} failed error: ${textOf(error)}`);
    throw error;
  }
}
