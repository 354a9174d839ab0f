import type { ReconcileRun } from '@keelson/controller-kit';
import { timeMs } from '@keelson/core';
import { Job, Pod } from '@keelson/kinds';
import { isGone, podOf } from '../workload/pod-writes.ts';
import { countsAsFailure } from './failure-policy.ts';

/** Pods keep this finalizer until their end is counted in the status of the job. */
export const trackingFinalizer = 'batch.kubernetes.io/job-tracking';
const indexAnnotation = 'batch.kubernetes.io/job-completion-index';
const failuresAnnotation = 'batch.kubernetes.io/job-index-failure-count';
const ignoredFailuresAnnotation = 'batch.kubernetes.io/job-index-ignored-failure-count';
/** The server appends five characters to generated names and allows 63. */
const maxGeneratedPrefix = 58;

export function isIndexed({ spec }: Job): boolean {
  return spec.completionMode === 'Indexed';
}

export function isTracked({ metadata }: Pod): boolean {
  return metadata?.finalizers?.includes(trackingFinalizer) ?? false;
}

/** True when a pod is replaced only after its end, not already when its deletion begins. */
export function replacesOnlyFailed({ spec }: Job): boolean {
  return spec.podReplacementPolicy === 'Failed' || spec.podFailurePolicy !== undefined;
}

/** True when a pod has failed, or is being deleted and thereby counts as failed. */
export function isFailed({ metadata, status }: Pod, job: Job): boolean {
  if (status?.phase === 'Failed') return true;
  return !replacesOnlyFailed(job) && metadata?.deletionTimestamp !== undefined && status?.phase !== 'Succeeded';
}

/** The completion index of a pod; undefined when it has none, or one that the job does not have. */
export function indexOf({ metadata }: Pod, { spec }: Job): number | undefined {
  const text = metadata?.annotations?.[indexAnnotation];
  if (text === undefined || !/^\d{1,10}$/.test(text) || Number(text) >= (spec.completions ?? 0)) return undefined;
  return Number(text);
}

/** The number of earlier failed pods of the same index that count towards `backoffLimitPerIndex`. */
export function countedFailures(pod: Pod): number {
  return count(pod, failuresAnnotation);
}

/** The number of all earlier failed pods of the same index. */
export function allFailures(pod: Pod): number {
  return count(pod, failuresAnnotation) + count(pod, ignoredFailuresAnnotation);
}

function count({ metadata }: Pod, annotation: string): number {
  const text = metadata?.annotations?.[annotation] ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/** When a pod has ended, in epoch milliseconds. */
export function endedAt({ metadata, spec, status }: Pod): number {
  const restartable = new Set(
    (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always').map(({ name }) => name),
  );
  const containers = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []).filter(({ name }) => restartable.has(name)),
  ];
  const ends = containers.map(({ state }) => timeMs(state?.terminated?.finishedAt ?? ''));
  if (ends.length > 0 && ends.every((end) => end !== undefined)) return Math.max(...ends);
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const unready = ready?.status === 'False' ? timeMs(ready.lastTransitionTime ?? '') : undefined;
  const deleted = timeMs(metadata?.deletionTimestamp ?? '');
  const requested =
    deleted === undefined ? undefined : deleted - Number(metadata?.deletionGracePeriodSeconds ?? 0) * 1000;
  return unready ?? requested ?? timeMs(metadata?.creationTimestamp ?? '') ?? 0;
}

/**
 * The pod of a job to be created.
 *
 * @param index completion index of an indexed job
 * @param replaced the failed pod of the same index; the new pod continues its failure counts
 */
export function jobPod(job: Job, index?: number, replaced?: Pod): Pod {
  const pod = podOf(job.spec.template, Job, job);
  const metadata = { ...pod.metadata };
  if (!isTracked(pod)) metadata.finalizers = [...(metadata.finalizers ?? []), trackingFinalizer];
  if (index === undefined) return { ...pod, metadata };
  const name = job.metadata?.name ?? '';
  const suffix = `-${index}-`;
  metadata.generateName = `${name.slice(0, maxGeneratedPrefix - suffix.length)}${suffix}`;
  metadata.labels = { ...metadata.labels, [indexAnnotation]: `${index}` };
  metadata.annotations = { ...metadata.annotations, [indexAnnotation]: `${index}`, ...failuresOf(job, replaced) };
  pod.spec.hostname = `${name}-${index}`;
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
    const { env = [] } = container;
    if (env.some((variable) => variable.name === 'JOB_COMPLETION_INDEX')) continue;
    const fieldRef = { fieldPath: `metadata.labels['${indexAnnotation}']` };
    container.env = [...env, { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef } }];
  }
  return { ...pod, metadata };
}

function failuresOf(job: Job, replaced: Pod | undefined): Record<string, string> {
  if (job.spec.backoffLimitPerIndex === undefined) return {};
  if (replaced === undefined) return { [failuresAnnotation]: '0' };
  const counts = countsAsFailure(job, replaced);
  const ignored = count(replaced, ignoredFailuresAnnotation) + (counts ? 0 : 1);
  return {
    [failuresAnnotation]: `${countedFailures(replaced) + (counts ? 1 : 0)}`,
    ...(ignored === 0 ? {} : { [ignoredFailuresAnnotation]: `${ignored}` }),
  };
}

/** Removes the finalizer that keeps a pod until it is counted; without effect when the pod is gone. */
export async function stopTracking(run: ReconcileRun, pod: Pod): Promise<void> {
  if (!isTracked(pod)) return;
  const { name = '', namespace = '', uid } = pod.metadata ?? {};
  const metadata = { uid, '$deleteFromPrimitiveList/finalizers': [trackingFinalizer] };
  try {
    await run.client.resource(Pod).namespace(namespace).patch(name, 'strategic', { metadata });
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}
