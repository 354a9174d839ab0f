import { type Column, defineKind, humanDuration, type KindDefinition, type KubeObject, timeMs } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { nameWarnings, podSpecWarnings } from '../../core/v1/pod/pod-warnings.ts';
import { newErrors } from '../../validation/checks.ts';
import { podColumns } from '../../workload/workload-columns.ts';
import { checkJob, checkJobUpdate, jobLabels } from './check-job.ts';
import { checkJobStatus, hasJobCondition } from './check-job-status.ts';
import { JobSchema, type JobSpec, type Job as JobType } from './schema/index.ts';

/**
 * Condition types in the order of precedence for the status column. `deleted` represents a job that is being deleted.
 */
const shownConditions = ['Complete', 'Failed', 'deleted', 'Suspended', 'FailureTarget', 'SuccessCriteriaMet'];

const columns: readonly Column<JobType>[] = [
  nameColumn(),
  column('Status', 'string', 'What the conditions say.', ({ metadata, status }) => {
    const found = shownConditions.find((type) =>
      type === 'deleted' ? metadata?.deletionTimestamp : hasJobCondition(status, type),
    );
    return found === 'deleted' ? 'Terminating' : (found ?? 'Running');
  }),
  column('Completions', 'string', 'Pods that succeeded, of those that must.', ({ spec, status }) => {
    const succeeded = status?.succeeded ?? 0;
    if (spec.completions !== undefined) return `${succeeded}/${spec.completions}`;
    const parallelism = spec.parallelism ?? 0;
    return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
  }),
  column('Duration', 'string', 'Time from the start to the end, or until now.', ({ status }, { now }) => {
    const start = status?.startTime ? timeMs(status.startTime) : undefined;
    if (start === undefined) return '';
    const end = status?.completionTime ? timeMs(status.completionTime) : undefined;
    return humanDuration((end ?? now.getTime()) - start);
  }),
  ageColumn,
  ...podColumns,
];

/** Runs pods until a number of them have succeeded. */
export const Job: KindDefinition<JobType> = defineKind({
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  names: { categories: ['all'] },
  schema: JobSchema,
  strategy: {
    generation: 'spec',
    defaultPropagation: 'Orphan',
    propagationWarning:
      'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them ' +
      'or set propagationPolicy=Orphan to suppress this warning',
    default: defaultJob,
    prepareForCreate: generateLabels,
    validate(job) {
      const errors = newErrors();
      checkJob(job, errors);
      return errors;
    },
    validateUpdate(job, old) {
      const errors = newErrors();
      checkJobUpdate(job, old, errors);
      return errors;
    },
    validateStatusUpdate(job, old) {
      const errors = newErrors();
      checkJobStatus(job, old, errors);
      return errors;
    },
    warnings: (job, old) => jobWarnings(job, old, job.spec, 'spec'),
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
  selectableFields: [['status.successful', ({ status }) => String(status?.succeeded ?? 0)]],
});
export type Job = JobType;

function defaultJob(job: JobType): void {
  const { spec } = job;
  if (spec.parallelism === undefined) spec.completions ??= 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : 2147483647;
  const labels = spec.template.metadata?.labels;
  if (labels && Object.keys(job.metadata?.labels ?? {}).length === 0) {
    // The same object as in the template: so generateLabels recognizes labels that the client did not set.
    job.metadata = { ...job.metadata, labels };
  }
  spec.completionMode ??= 'NonIndexed';
  spec.suspend ??= false;
  spec.podReplacementPolicy ??= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed';
  spec.manualSelector ??= false;
  defaultJobSpec(spec);
}

/** Defaults that jobs and the templates of cron jobs share. */
export function defaultJobSpec(spec: JobSpec): void {
  for (const rule of spec.podFailurePolicy?.rules ?? []) {
    for (const pattern of rule.onPodConditions ?? []) pattern.status ||= 'True';
  }
  defaultPodSpec(spec.template.spec);
}

/**
 * Generates labels for the pods, which a job without labels of its own has too, and a selector for one of these labels.
 * Values of the client are kept and validated.
 */
function generateLabels(job: JobType): void {
  const { metadata, spec } = job;
  if (spec.manualSelector) return;
  const labels = { ...jobLabels(metadata?.name ?? '', metadata?.uid ?? ''), ...spec.template.metadata?.labels };
  const inherits =
    Object.keys(metadata?.labels ?? {}).length === 0 || metadata?.labels === spec.template.metadata?.labels;
  if (inherits) job.metadata = { ...metadata, labels: { ...labels } };
  spec.template.metadata = { ...spec.template.metadata, labels };
  const key = 'batch.kubernetes.io/controller-uid';
  spec.selector ??= {};
  spec.selector.matchLabels = { [key]: metadata?.uid ?? '', ...spec.selector.matchLabels };
}

/** Warnings about a new job or cron job, and about the changed spec of one that exists. */
export function jobWarnings(object: KubeObject, old: KubeObject | undefined, spec: JobSpec, path: string): string[] {
  if (old && old.metadata?.generation === object.metadata?.generation) return [];
  const warnings = old ? [] : nameWarnings(object.metadata?.name ?? '');
  const { completionMode, completions = 0, parallelism = 0 } = spec;
  if (completionMode === 'Indexed' && completions > 100_000 && parallelism > 10_000) {
    warnings.push(
      `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, ` +
        'Kubernetes might not be able to track completedIndexes when a big number of indexes fail',
    );
  }
  return [...warnings, ...podSpecWarnings(spec.template, `${path}.template`)];
}
