import {
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  fieldError,
  type LabelSelectorSpec,
  labelSelectorErrors,
  labelSelectorOf,
} from '@keelson/core';
import { checkPodTemplate } from '../../core/v1/pod/check-pod-spec.ts';
import type { PodTemplateSpec } from '../../core/v1/schema/index.ts';
import { checkNonNegative, checkUnchanged, type Errors, pushInvalid } from '../../validation/checks.ts';
import { checkPodFailurePolicy, checkSuccessPolicy } from './check-job-policies.ts';
import type { Job, JobSpec, JobTemplateSpec } from './schema/index.ts';

const maxParallelism = 100_000;
const maxFailedIndexes = 100_000;
/** With more completions than this, parallelism and failed indexes have a lower limit. */
const manyCompletions = 100_000;
const limitOfMany = 10_000;
const maxManagedBy = 63;

const counts = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
] as const;

/** Validates the spec of a Job. */
export function checkJob({ metadata, spec }: Job, errors: Errors): void {
  const { name = '', uid = '' } = metadata ?? {};
  checkGeneratedLabels(spec, name, uid, errors);
  checkJobSpec(spec, 'spec', errors);
  if (!spec.selector) errors.push(fieldError.required('spec.selector'));
  else checkSelector(spec.selector, spec.template, errors);
  if (spec.completionMode === 'Indexed' && (spec.completions ?? 0) > 0) {
    const host = `${name}-${(spec.completions ?? 0) - 1}`;
    if (dns1123LabelErrors(host).length > 0) {
      const detail = `will not able to create pod with invalid DNS label: ${host}`;
      errors.push(fieldError.invalid('metadata.name', name, detail));
    }
  }
}

function checkSelector(selector: LabelSelectorSpec, template: PodTemplateSpec, errors: Errors): void {
  const problems = labelSelectorErrors(selector, 'spec.selector');
  for (const problem of problems) errors.push(problem);
  const labels = template.metadata?.labels ?? {};
  if (problems.length > 0 || labelSelectorOf(selector).matches(labels)) return;
  const detail = '`selector` does not match template `labels`';
  errors.push(fieldError.invalid('spec.template.metadata.labels', labels, detail));
}

/** Labels that the server gives the pods of a job, with their values. */
export function jobLabels(name: string, uid: string): Record<string, string> {
  return {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  };
}

/** Rejects labels and a selector that contradict those that the server generates. */
function checkGeneratedLabels(spec: JobSpec, name: string, uid: string, errors: Errors): void {
  if (spec.manualSelector || !spec.selector) return;
  const expected = jobLabels(name, uid);
  const labels = spec.template.metadata?.labels ?? {};
  for (const [key, value] of Object.entries(expected)) {
    const path = `spec.template.metadata.labels[${key}]`;
    const detail = `must be '${value}'`;
    if (!Object.hasOwn(labels, key)) errors.push(fieldError.required(path, detail));
    else if (labels[key] !== value) errors.push(fieldError.invalid(path, labels, detail));
  }
  if (labelSelectorErrors(spec.selector, '').length > 0 || labelSelectorOf(spec.selector).matches(expected)) return;
  errors.push(fieldError.invalid('spec.selector', spec.selector, '`selector` not auto-generated'));
}

/** Validates the spec of the jobs that a cron job makes. */
export function checkJobTemplate({ spec }: JobTemplateSpec, path: string, errors: Errors): void {
  checkJobSpec(spec, `${path}.spec`, errors);
  if (spec.selector) {
    errors.push(fieldError.invalid(`${path}.spec.selector`, spec.selector, '`selector` will be auto-generated'));
  }
  if (spec.manualSelector) {
    errors.push(fieldError.notSupported(`${path}.spec.manualSelector`, true, ['nil', 'false']));
  }
}

function checkJobSpec(spec: JobSpec, path: string, errors: Errors): void {
  for (const field of counts) checkNonNegative(spec[field], `${path}.${field}`, errors);
  if (spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined) {
    errors.push(fieldError.required(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified'));
  }
  checkManagedBy(spec.managedBy, `${path}.managedBy`, errors);
  checkCompletionMode(spec, path, errors);
  if (spec.podFailurePolicy) checkPodFailurePolicy(spec, `${path}.podFailurePolicy`, errors);
  if (spec.successPolicy && spec.completionMode !== 'Indexed') {
    const detail = 'requires indexed completion mode';
    errors.push(fieldError.invalid(`${path}.successPolicy`, spec.successPolicy, detail));
  } else if (spec.successPolicy) {
    checkSuccessPolicy(spec, `${path}.successPolicy`, errors);
  }
  const replacements = spec.podFailurePolicy ? ['Failed'] : ['Failed', 'TerminatingOrFailed'];
  if (spec.podReplacementPolicy !== undefined && !replacements.includes(spec.podReplacementPolicy)) {
    errors.push(fieldError.notSupported(`${path}.podReplacementPolicy`, spec.podReplacementPolicy, replacements));
  }
  checkPodTemplate(spec.template, `${path}.template`, errors);
  checkRestartPolicy(spec, `${path}.template.spec.restartPolicy`, errors);
}

function checkRestartPolicy(spec: JobSpec, path: string, errors: Errors): void {
  const { restartPolicy = '' } = spec.template.spec;
  if (restartPolicy === 'Always' || restartPolicy === '') {
    errors.push(fieldError.required(path, 'valid values: "OnFailure", "Never"'));
  } else if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never') {
    errors.push(fieldError.notSupported(path, restartPolicy, ['OnFailure', 'Never']));
  } else if (spec.podFailurePolicy && restartPolicy !== 'Never') {
    const detail = 'only "Never" is supported when podFailurePolicy is specified';
    errors.push(fieldError.invalid(path, restartPolicy, detail));
  }
}

const pathSource = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const pathPattern = new RegExp(`^${pathSource}$`);

/** Requires a path that begins with a domain: `example.com/controller`. */
function checkManagedBy(value: string | undefined, path: string, errors: Errors): void {
  if (value === undefined) return;
  const slash = value.indexOf('/');
  if (value === '') errors.push(fieldError.required(path));
  else if (slash <= 0 || slash === value.length - 1) {
    errors.push(fieldError.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")'));
  } else {
    const [domain, rest] = [value.slice(0, slash), value.slice(slash + 1)];
    pushInvalid(dns1123SubdomainErrors(domain), domain, path, errors);
    if (!pathPattern.test(rest)) {
      const detail = `Invalid path (regex used for validation is '${pathSource}')`;
      errors.push(fieldError.invalid(path, rest, detail));
    }
  }
  if (value.length > maxManagedBy) errors.push(fieldError.tooLong(path, maxManagedBy));
}

function checkCompletionMode(spec: JobSpec, path: string, errors: Errors): void {
  const { completionMode = 'NonIndexed', backoffLimitPerIndex, maxFailedIndexes: failed } = spec;
  if (completionMode === 'Indexed') {
    checkIndexed(spec, path, errors);
  } else if (completionMode === 'NonIndexed') {
    const detail = 'requires indexed completion mode';
    if (backoffLimitPerIndex !== undefined) {
      errors.push(fieldError.invalid(`${path}.backoffLimitPerIndex`, backoffLimitPerIndex, detail));
    }
    if (failed !== undefined) errors.push(fieldError.invalid(`${path}.maxFailedIndexes`, failed, detail));
  } else {
    errors.push(fieldError.notSupported(`${path}.completionMode`, completionMode, ['NonIndexed', 'Indexed']));
  }
}

function checkIndexed(spec: JobSpec, path: string, errors: Errors): void {
  const { completions, parallelism = 0, maxFailedIndexes: failed, backoffLimitPerIndex } = spec;
  const tooGreat = (field: string, value: number, limit: number | string) =>
    errors.push(fieldError.invalid(`${path}.${field}`, value, `must be less than or equal to ${limit}`));
  if (completions === undefined) {
    errors.push(fieldError.required(`${path}.completions`, 'when completion mode is Indexed'));
  }
  if (parallelism > maxParallelism) {
    tooGreat('parallelism', parallelism, `${maxParallelism} when completion mode is Indexed`);
  }
  if (completions !== undefined && failed !== undefined && failed > completions) {
    tooGreat('maxFailedIndexes', failed, 'completions');
  }
  if (failed !== undefined && failed > maxFailedIndexes) tooGreat('maxFailedIndexes', failed, maxFailedIndexes);
  if ((completions ?? 0) <= manyCompletions || backoffLimitPerIndex === undefined) return;
  const many = `${limitOfMany} when completions are above ${manyCompletions} and used with backoff limit per index`;
  if (failed === undefined) {
    const detail = `must be specified when completions is above ${manyCompletions}`;
    errors.push(fieldError.required(`${path}.maxFailedIndexes`, detail));
  }
  if (parallelism > limitOfMany) tooGreat('parallelism', parallelism, many);
  if (failed !== undefined && failed > limitOfMany) tooGreat('maxFailedIndexes', failed, many);
}

const immutable = ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const;

/** Rejects changes of fields of a job that are immutable. */
export function checkJobUpdate({ spec }: Job, old: Job, errors: Errors): void {
  checkCompletionsChange(spec, old.spec, errors);
  checkUnchanged(spec.selector, old.spec.selector, 'spec.selector', errors);
  checkUnchanged(spec.template, changeableTemplate(spec.template, old), 'spec.template', errors);
  for (const field of immutable) checkUnchanged(spec[field], old.spec[field], `spec.${field}`, errors);
}

function checkCompletionsChange(spec: JobSpec, old: JobSpec, errors: Errors): void {
  const { completions, parallelism } = spec;
  if (spec.completionMode !== 'Indexed') {
    checkUnchanged(completions, old.completions, 'spec.completions', errors);
  } else if (completions !== undefined && completions !== old.completions && completions !== parallelism) {
    const detail = 'can only be modified in tandem with spec.parallelism';
    errors.push(fieldError.invalid('spec.completions', completions, detail));
  }
}

/** The stored template, with the new values of the fields that a suspended job may change before its first start. */
function changeableTemplate(template: PodTemplateSpec, { spec, status }: Job): PodTemplateSpec {
  if (!spec.suspend || status?.startTime) return spec.template;
  const { nodeSelector, tolerations, schedulingGates, affinity } = template.spec;
  const { nodeAffinity: _, ...others } = spec.template.spec.affinity ?? {};
  const wanted = { ...others, ...(affinity?.nodeAffinity ? { nodeAffinity: affinity.nodeAffinity } : {}) };
  const changed: Record<string, unknown> = {
    ...spec.template.spec,
    nodeSelector,
    tolerations,
    schedulingGates,
    affinity: affinity || Object.keys(wanted).length > 0 ? wanted : undefined,
  };
  const { annotations, labels } = template.metadata ?? {};
  const metadata = { ...spec.template.metadata, annotations, labels };
  return { ...spec.template, metadata, spec: changed } as unknown as PodTemplateSpec;
}
