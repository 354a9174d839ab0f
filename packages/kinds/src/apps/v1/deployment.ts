import { defineKind, type KindDefinition } from '@keelson/core';
import { defaultPodSpec } from '../../core/v1/pod/default-pod-spec.ts';
import { nameWarnings, templateWarnings } from '../../core/v1/pod/pod-warnings.ts';
import { checkUnchanged, newErrors } from '../../validation/checks.ts';
import { checkDeployment, checkDeploymentStatus } from '../../workload/check-deployment.ts';
import { restoreLabels } from '../../workload/restore-labels.ts';
import { autoscalingScale } from '../../workload/scale.ts';
import { deploymentColumns } from '../../workload/workload-columns.ts';
import { DeploymentSchema, type Deployment as DeploymentType } from './schema/index.ts';

/** Keeps a number of equal pods running and replaces them step by step. Also the stored form of extensions/v1beta1. */
export const Deployment: KindDefinition<DeploymentType> = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  names: { shortNames: ['deploy'], categories: ['all'] },
  schema: DeploymentSchema,
  strategy: {
    generation: 'spec-and-annotations',
    default: defaultDeployment,
    prepareForStatusUpdate: restoreLabels,
    validate({ spec }) {
      const errors = newErrors();
      checkDeployment(spec, errors);
      return errors;
    },
    validateUpdate({ spec }, old) {
      const errors = newErrors();
      checkUnchanged(spec.selector, old.spec.selector, 'spec.selector', errors);
      return errors;
    },
    validateStatusUpdate({ status }, old) {
      const errors = newErrors();
      checkDeploymentStatus(status, old.status, errors);
      return errors;
    },
    warnings: (object, old) => [
      ...(old ? [] : nameWarnings(object.metadata?.name ?? '')),
      ...templateWarnings(object, old, object.spec.template),
    ],
  },
  subresources: [autoscalingScale, { type: 'status', name: 'status' }],
  columns: deploymentColumns,
});
export type Deployment = DeploymentType;

function defaultDeployment({ spec }: DeploymentType): void {
  spec.replicas ??= 1;
  spec.strategy ??= {};
  spec.strategy.type ||= 'RollingUpdate';
  if (spec.strategy.type === 'RollingUpdate') {
    spec.strategy.rollingUpdate ??= {};
    spec.strategy.rollingUpdate.maxUnavailable ??= '25%';
    spec.strategy.rollingUpdate.maxSurge ??= '25%';
  }
  spec.revisionHistoryLimit ??= 10;
  spec.progressDeadlineSeconds ??= 600;
  defaultPodSpec(spec.template.spec);
}
