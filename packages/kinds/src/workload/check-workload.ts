import { fieldError, type LabelSelectorSpec, labelSelectorErrors, labelSelectorOf } from '@keelson/core';
import { checkPodTemplate } from '../core/v1/pod/check-pod-spec.ts';
import type { PodTemplateSpec } from '../core/v1/schema/index.ts';
import type { Errors } from '../validation/checks.ts';
import { checkNonNegative, isEmptySelector } from '../validation/checks.ts';

/** Fields that all workloads have. */
export interface WorkloadSpec {
  readonly selector?: LabelSelectorSpec;
  readonly template: PodTemplateSpec;
  readonly minReadySeconds?: number;
}

/** The kind that creates the pods of a workload, for error messages. For a Deployment this is ReplicaSet. */
export type PodMaker = 'DaemonSet' | 'ReplicaSet' | 'StatefulSet';

/** The name of the workload in error messages about selectors. */
const selecting = { DaemonSet: 'daemonset', ReplicaSet: 'deployment', StatefulSet: 'statefulset' } as const;

/** Validates selector and template of a workload. */
export function checkWorkload(spec: WorkloadSpec, maker: PodMaker, errors: Errors): void {
  checkNonNegative(spec.minReadySeconds, 'spec.minReadySeconds', errors);
  checkSelector(spec, selecting[maker], errors);
  checkPodTemplate(spec.template, 'spec.template', errors);
  checkMadePods(spec.template, maker, errors);
}

/** Rejects templates whose pods would terminate by themselves. */
export function checkMadePods(template: PodTemplateSpec, maker: string, errors: Errors): void {
  const { restartPolicy, activeDeadlineSeconds } = template.spec;
  if (restartPolicy !== 'Always') {
    errors.push(fieldError.notSupported('spec.template.spec.restartPolicy', restartPolicy ?? '', ['Always']));
  }
  if (activeDeadlineSeconds !== undefined) {
    const detail = `activeDeadlineSeconds in ${maker} is not Supported`;
    errors.push(fieldError.forbidden('spec.template.spec.activeDeadlineSeconds', detail));
  }
}

function checkSelector(spec: WorkloadSpec, noun: string, errors: Errors): void {
  const { selector } = spec;
  if (!selector) {
    errors.push(fieldError.required('spec.selector'));
    return;
  }
  const problems = labelSelectorErrors(selector, 'spec.selector');
  for (const problem of problems) errors.push(problem);
  if (isEmptySelector(selector)) {
    errors.push(fieldError.invalid('spec.selector', selector, `empty selector is invalid for ${noun}`));
  }
  const labels = spec.template.metadata?.labels ?? {};
  if (problems.length === 0 && !labelSelectorOf(selector).matches(labels)) {
    errors.push(
      fieldError.invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'),
    );
  }
}
