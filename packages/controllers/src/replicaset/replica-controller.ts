import {
  type ControllerDefinition,
  claim,
  isControlledBy,
  type ReconcileResult,
  type ReconcileRun,
} from '@keelson/controller-kit';
import { type KindDefinition, type KubeObject, type LabelSelector, labelSetSelector } from '@keelson/core';
import { type appsV1, Pod, type PodTemplateSpec } from '@keelson/kinds';
import { timeOf, writeStatus } from '../workload/object-status.ts';
import { isActive, isAvailable, isReady, isTerminating, untilAvailable } from '../workload/pod-state.ts';
import { burstReplicas, createPod, deletePod, inParallel, podOf, slowStart, textOf } from '../workload/pod-writes.ts';
import { relatedOrphans } from '../workload/selector.ts';
import { rankedForDeletion } from './deletion-rank.ts';

/** The fields that replica sets and replication controllers share. */
export interface Replicated extends KubeObject {
  spec: { replicas?: number; minReadySeconds?: number; template?: PodTemplateSpec };
  status?: appsV1.ReplicaSetStatus;
}

export interface ReplicaControllerOptions<T extends Replicated> {
  readonly name: string;
  readonly eventSource?: string;
  readonly kind: KindDefinition<T>;
  readonly selectorOf: (object: T) => LabelSelector;
  /** Objects with the same owner. Pods on nodes that run many of their pods are deleted first. */
  readonly siblings?: (object: T, run: ReconcileRun) => readonly T[];
  /** Whether the status contains the number of terminating pods. */
  readonly countsTerminating: boolean;
}

/** A controller that keeps `spec.replicas` pods. */
export function replicaController<T extends Replicated>(options: ReplicaControllerOptions<T>): ControllerDefinition<T> {
  const { name, eventSource, kind, selectorOf } = options;
  return {
    name,
    ...(eventSource === undefined ? {} : { eventSource }),
    kind,
    workers: 5,
    owns: [Pod],
    related: [relatedOrphans(Pod, kind, selectorOf)],
    reconcile: (object, run) => reconcile(options, object, run),
  };
}

async function reconcile<T extends Replicated>(
  options: ReplicaControllerOptions<T>,
  object: T,
  run: ReconcileRun,
): Promise<ReconcileResult> {
  const { kind, selectorOf, countsTerminating } = options;
  const selector = selectorOf(object);
  const claimed = await claim(run, {
    ...{ owner: kind, object, kind: Pod, selector },
    // Ended pods are not adopted, but ended pods that are already controlled are not released.
    matches: (pod) => isActive(pod) || isControlledBy(pod, object),
  });
  const found = claimed.filter(isActive);
  const deleted = new Set<Pod>();
  let failure: unknown;
  if (object.metadata?.deletionTimestamp === undefined) {
    try {
      await createOrDelete(options, object, found, deleted, run);
    } catch (error) {
      failure = error;
    }
  }
  if (run.signal.aborted) return undefined;
  const now = run.clock.now();
  const minReadySeconds = object.spec.minReadySeconds ?? 0;
  // The status excludes pods that this run has deleted, so that a deployment does not count them as available.
  const pods = found.filter((pod) => !deleted.has(pod));
  const terminating = countsTerminating ? run.read(Pod).controlledBy(object).filter(isTerminating).length : undefined;
  const status: appsV1.ReplicaSetStatus = {
    replicas: pods.length,
    fullyLabeledReplicas: countLabeled(object, pods),
    readyReplicas: pods.filter(isReady).length,
    availableReplicas: pods.filter((pod) => isAvailable(pod, minReadySeconds, now)).length,
    ...(terminating === undefined ? {} : { terminatingReplicas: terminating }),
    ...(object.metadata?.generation === undefined ? {} : { observedGeneration: object.metadata.generation }),
  };
  const conditions = conditionsOf(object, pods.length, failure, run);
  if (conditions.length > 0) status.conditions = conditions;
  await writeStatus(run, kind, object, withoutZeros(status));
  if (failure !== undefined) throw failure;
  if (minReadySeconds === 0 || status.readyReplicas === status.availableReplicas) return undefined;
  return { againAfterMs: untilAvailable(pods, minReadySeconds, now) ?? minReadySeconds * 1000 };
}

async function createOrDelete<T extends Replicated>(
  { kind, siblings = (object) => [object] }: ReplicaControllerOptions<T>,
  object: T,
  pods: readonly Pod[],
  deleted: Set<Pod>,
  run: ReconcileRun,
): Promise<void> {
  const { replicas = 1, minReadySeconds = 0, template } = object.spec;
  if (template === undefined) return;
  const missing = Math.min(replicas - pods.length, burstReplicas);
  if (missing > 0) {
    const created = Array.from({ length: missing }, () => podOf(template, kind, object));
    await slowStart(created, (pod) => createPod(run, object, pod));
  }
  const surplus = Math.min(pods.length - replicas, burstReplicas);
  if (surplus <= 0) return;
  const related = siblings(object, run).flatMap((sibling) => run.read(Pod).controlledBy(sibling));
  const ranked = rankedForDeletion(pods, { related, minReadySeconds, now: run.clock.now() });
  await inParallel(ranked.slice(0, surplus), async (pod) => {
    await deletePod(run, object, pod);
    deleted.add(pod);
  });
}

function countLabeled({ spec }: Replicated, pods: readonly Pod[]): number {
  const labels = labelSetSelector(spec.template?.metadata?.labels ?? {});
  return pods.filter((pod) => labels.matches(pod.metadata?.labels)).length;
}

/** The conditions with ReplicaFailure added after the first failure and removed after a success. */
function conditionsOf(object: Replicated, count: number, failure: unknown, run: ReconcileRun) {
  const conditions = object.status?.conditions ?? [];
  const present = conditions.some(({ type }) => type === 'ReplicaFailure');
  if (failure === undefined) return conditions.filter(({ type }) => type !== 'ReplicaFailure');
  if (present) return conditions;
  const failed: appsV1.ReplicaSetCondition = {
    type: 'ReplicaFailure',
    status: 'True',
    lastTransitionTime: timeOf(run),
    reason: count < (object.spec.replicas ?? 1) ? 'FailedCreate' : 'FailedDelete',
    message: textOf(failure),
  };
  return [...conditions, failed];
}

/** In the stored status, counts of zero are omitted except for `replicas` and `terminatingReplicas`. */
function withoutZeros(status: appsV1.ReplicaSetStatus): appsV1.ReplicaSetStatus {
  const { fullyLabeledReplicas, readyReplicas, availableReplicas, ...rest } = status;
  return {
    ...rest,
    ...(fullyLabeledReplicas ? { fullyLabeledReplicas } : {}),
    ...(readyReplicas ? { readyReplicas } : {}),
    ...(availableReplicas ? { availableReplicas } : {}),
  };
}
