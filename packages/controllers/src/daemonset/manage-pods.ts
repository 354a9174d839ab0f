import type { ReconcileRun } from '@keelson/controller-kit';
import type { DaemonSet, Pod } from '@keelson/kinds';
import { isAvailable, isReady } from '../workload/pod-state.ts';
import { burstReplicas, createPod, deletePod, inParallel, slowStart } from '../workload/pod-writes.ts';
import { daemonPodFor, isUpdated, surgeOf } from './daemon-pods.ts';
import type { FailedPodBackoff } from './failed-pod-backoff.ts';
import { byAssignmentAndAge, type NodeEntry, type NodePods } from './node-pods.ts';

/** The input of one reconcile run for a DaemonSet. */
export interface DaemonRun {
  readonly run: ReconcileRun;
  readonly set: DaemonSet;
  readonly nodes: NodePods;
  /** Revision of the present template. */
  readonly hash: string;
}

type ManageOptions = DaemonRun & { readonly backoff: FailedPodBackoff };

interface Changes {
  /** Names of the nodes that receive a pod. */
  readonly create: string[];
  readonly remove: Pod[];
  againAfterMs: number | undefined;
}

/**
 * Creates the missing pods of nodes that should have one, and deletes failed ones, surplus ones, and those of nodes
 * that should have none.
 */
export async function managePods(
  options: ManageOptions,
): Promise<{ readonly written: boolean; readonly againAfterMs: number | undefined }> {
  const { nodes } = options;
  const changes: Changes = { create: [], remove: [], againAfterMs: undefined };
  for (const node of nodes.existing) decide(options, node, changes);
  // Only unassigned pods are deleted here: the pod garbage collector deletes pods that are assigned to missing nodes.
  for (const { pods } of nodes.gone) changes.remove.push(...pods.filter(({ spec }) => !spec.nodeName));
  const { create, remove, againAfterMs } = changes;
  await applyChanges(options, create, remove);
  return { written: create.length + remove.length > 0, againAfterMs };
}

/** Creates pods for nodes in growing batches, and deletes pods. */
export async function applyChanges(
  { run, set, hash }: DaemonRun,
  create: readonly string[],
  remove: readonly Pod[],
): Promise<void> {
  const results = await Promise.allSettled([
    slowStart(create.slice(0, burstReplicas), (node) => createPod(run, set, daemonPodFor(set, node, hash))),
    inParallel(remove.slice(0, burstReplicas), (pod) => deletePod(run, set, pod)),
  ]);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

function decide(options: ManageOptions, { name, fit, pods }: NodeEntry, changes: Changes): void {
  if (fit.shouldRun && pods.length === 0) {
    changes.create.push(name);
    return;
  }
  const present = pods.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  if (!fit.mayStay) {
    changes.remove.push(...present);
    return;
  }
  const running = present.filter((pod) => !removeEnded(options, name, pod, changes)).sort(byAssignmentAndAge);
  if (surgeOf(options.set, 1) === 0) changes.remove.push(...running.slice(1));
  else if (running.length === 0 && fit.shouldRun) changes.create.push(name);
  else if (running.length > 1) changes.remove.push(...surplusOf(options, running));
}

/** True for a pod that has ended, which is added to the pods to delete. The back-off delays this for failed pods. */
function removeEnded({ run, set, backoff }: ManageOptions, node: string, pod: Pod, changes: Changes): boolean {
  const name = `${pod.metadata?.namespace}/${pod.metadata?.name} on node ${node}`;
  if (pod.status?.phase === 'Succeeded') {
    run.event(set, 'Normal', 'SucceededDaemonPod', `Found succeeded daemon pod ${name}, will try to delete it`);
    changes.remove.push(pod);
    return true;
  }
  if (pod.status?.phase !== 'Failed') return false;
  const key = `${set.metadata?.uid}/${node}`;
  const now = run.clock.monotonic();
  const wait = backoff.wait(key, now);
  if (wait > 0) {
    changes.againAfterMs = Math.min(changes.againAfterMs ?? wait, wait);
    return true;
  }
  backoff.deleted(key, now);
  run.event(set, 'Warning', 'FailedDaemonPod', `Found failed daemon pod ${name}, will try to kill it`);
  changes.remove.push(pod);
  return true;
}

/**
 * The surplus pods of a node. During a surge the node keeps its oldest new pod and its oldest old pod, until the new
 * pod is available or the old pod is not ready.
 */
function surplusOf({ run, set, hash }: ManageOptions, running: readonly Pod[]): Pod[] {
  const isNew = (pod: Pod) => isUpdated(pod, set, hash);
  const updated = running.find(isNew);
  const old = running.find((pod) => !isNew(pod));
  const surplus = running.filter((pod) => pod !== updated && pod !== old);
  if (updated === undefined || old === undefined) return surplus;
  const available = isAvailable(updated, set.spec.minReadySeconds ?? 0, run.clock.now());
  return available || !isReady(old) ? [...surplus, old] : surplus;
}
