import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
  typeMetaFields,
} from '@keelson/core';
import * as apps from '../../../apps/v1/schema/index.ts';
import { PodTemplateSpecSchema } from '../../../core/v1/schema/pod.ts';
import { versionTwin } from '../../../versions/version-twin.ts';

const twin = versionTwin('k8s.io.api.apps.v1.', 'k8s.io.api.extensions.v1beta1.');

const rollbackConfig = s.message('k8s.io.api.extensions.v1beta1.RollbackConfig', 'What to roll back to.', {
  revision: optional(1, s.int64(), 'Revision to go back to; 0 for the last one.'),
});
export interface RollbackConfig extends Infer<typeof rollbackConfig> {}
export const RollbackConfigSchema: Schema<RollbackConfig> = rollbackConfig;

const deploymentRollback = s.message(
  'k8s.io.api.extensions.v1beta1.DeploymentRollback',
  'Asks a deployment to go back to an earlier revision.',
  {
    ...typeMetaFields,
    name: always(1, s.string(), 'Name of the deployment.'),
    updatedAnnotations: optional(2, s.map(s.string()), 'Annotations to set on the deployment.'),
    rollbackTo: always(3, RollbackConfigSchema, 'Revision to go back to.'),
  },
);
export interface DeploymentRollback extends KubeObject, Infer<typeof deploymentRollback> {}
export const DeploymentRollbackSchema: Schema<DeploymentRollback> = deploymentRollback;

export type RollingUpdateDeployment = apps.RollingUpdateDeployment;
export const RollingUpdateDeploymentSchema: Schema<RollingUpdateDeployment> = twin(apps.RollingUpdateDeploymentSchema);

export type DeploymentStrategy = apps.DeploymentStrategy;
export const DeploymentStrategySchema: Schema<DeploymentStrategy> = twin(apps.DeploymentStrategySchema);

const deploymentSpec = s.message('k8s.io.api.extensions.v1beta1.DeploymentSpec', 'Intended state of a deployment.', {
  replicas: optional(1, s.int32(), 'Desired number of pods; 1 by default.', { presence: true }),
  selector: optional(
    2,
    labelSelectorSchema,
    'Labels by which the pods are recognised; those of the template by default.',
  ),
  template: always(3, PodTemplateSpecSchema, 'Template of the pods.'),
  strategy: filled(4, DeploymentStrategySchema, 'How pods are replaced by new ones.', { patchStrategy: 'retainKeys' }),
  minReadySeconds: optional(5, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  revisionHistoryLimit: optional(6, s.int32(), 'How many old replica sets are kept for rolling back.', {
    presence: true,
  }),
  paused: optional(7, s.bool(), 'True pauses rollouts of the template.'),
  rollbackTo: optional(8, RollbackConfigSchema, 'Asks for going back to an earlier revision; cleared when done.'),
  progressDeadlineSeconds: optional(
    9,
    s.int32(),
    'Seconds without progress after which the deployment is reported as stuck.',
    {
      presence: true,
    },
  ),
});
export interface DeploymentSpec extends Infer<typeof deploymentSpec> {}
export const DeploymentSpecSchema: Schema<DeploymentSpec> = deploymentSpec;

export type DeploymentCondition = apps.DeploymentCondition;
export const DeploymentConditionSchema: Schema<DeploymentCondition> = twin(apps.DeploymentConditionSchema);

export type DeploymentStatus = apps.DeploymentStatus;
export const DeploymentStatusSchema: Schema<DeploymentStatus> = twin(apps.DeploymentStatusSchema);

const deployment = s.message(
  'k8s.io.api.extensions.v1beta1.Deployment',
  'Keeps a number of equal pods running and replaces them step by step when their template changes.',
  {
    spec: embedded(2, DeploymentSpecSchema, 'Intended state.'),
    status: filled(3, DeploymentStatusSchema, 'Observed state.'),
  },
);
export interface Deployment extends KubeObject, Infer<typeof deployment> {}
export const DeploymentSchema: Schema<Deployment> = deployment;
