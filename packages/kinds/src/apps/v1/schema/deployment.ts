import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';
import { PodTemplateSpecSchema } from '../../../core/v1/schema/pod.ts';

const rollingUpdateDeployment = s.message('k8s.io.api.apps.v1.RollingUpdateDeployment', 'Pace of a rolling update.', {
  maxUnavailable: optional(
    1,
    s.intOrString(),
    'How many pods may be missing: a number or a percentage of replicas, rounded down. Not 0 together with maxSurge.',
    { presence: true },
  ),
  maxSurge: optional(
    2,
    s.intOrString(),
    'How many pods there may be beyond replicas: a number or a percentage, rounded up. Not 0 together with maxUnavailable.',
    { presence: true },
  ),
});
export interface RollingUpdateDeployment extends Infer<typeof rollingUpdateDeployment> {}
export const RollingUpdateDeploymentSchema: Schema<RollingUpdateDeployment> = rollingUpdateDeployment;

const deploymentStrategy = s.message('k8s.io.api.apps.v1.DeploymentStrategy', 'How pods are replaced by new ones.', {
  type: optional(
    1,
    s.string({ values: ['Recreate', 'RollingUpdate'] }),
    'RollingUpdate, or Recreate to end all old pods first.',
  ),
  rollingUpdate: optional(2, RollingUpdateDeploymentSchema, 'Pace, for RollingUpdate only.'),
});
export interface DeploymentStrategy extends Infer<typeof deploymentStrategy> {}
export const DeploymentStrategySchema: Schema<DeploymentStrategy> = deploymentStrategy;

const deploymentSpec = s.message('k8s.io.api.apps.v1.DeploymentSpec', 'Intended state of a deployment.', {
  replicas: optional(1, s.int32(), 'Desired number of pods; 1 by default.', { presence: true }),
  selector: required(2, labelSelectorSchema, 'Labels by which the pods are recognised; must fit the template.'),
  template: always(3, PodTemplateSpecSchema, 'Template of the pods.'),
  strategy: filled(4, DeploymentStrategySchema, 'How pods are replaced by new ones.', { patchStrategy: 'retainKeys' }),
  minReadySeconds: optional(5, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  revisionHistoryLimit: optional(6, s.int32(), 'How many old replica sets are kept for rolling back.', {
    presence: true,
  }),
  paused: optional(7, s.bool(), 'True pauses rollouts of the template.'),
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

const deploymentCondition = s.message(
  'k8s.io.api.apps.v1.DeploymentCondition',
  'One observed condition of a deployment.',
  {
    type: always(1, s.string(), 'Type of the condition: Available, Progressing or ReplicaFailure.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastUpdateTime: optional(6, s.time(), 'When the observation was last renewed.'),
    lastTransitionTime: optional(7, s.time(), 'When status last changed.'),
    reason: optional(4, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(5, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface DeploymentCondition extends Infer<typeof deploymentCondition> {}
export const DeploymentConditionSchema: Schema<DeploymentCondition> = deploymentCondition;

const deploymentStatus = s.message('k8s.io.api.apps.v1.DeploymentStatus', 'Observed state of a deployment.', {
  observedGeneration: optional(1, s.int64(), 'The metadata.generation that the controller has observed.'),
  replicas: optional(2, s.int32(), 'Number of old and new pods, without terminating ones.'),
  updatedReplicas: optional(3, s.int32(), 'Pods of the present template.'),
  readyReplicas: optional(7, s.int32(), 'Pods that are ready.'),
  availableReplicas: optional(4, s.int32(), 'Pods that have been ready for minReadySeconds.'),
  unavailableReplicas: optional(5, s.int32(), 'Pods that are missing for the desired number.'),
  terminatingReplicas: optional(9, s.int32(), 'Pods that are ending.', { presence: true }),
  conditions: optional(6, s.listByKey(DeploymentConditionSchema, 'type'), 'Latest observations.'),
  collisionCount: optional(8, s.int32(), "How often a name for a new replica set was taken; part of the name's hash.", {
    presence: true,
  }),
});
export interface DeploymentStatus extends Infer<typeof deploymentStatus> {}
export const DeploymentStatusSchema: Schema<DeploymentStatus> = deploymentStatus;

const deployment = s.message(
  'k8s.io.api.apps.v1.Deployment',
  'Keeps a number of equal pods running and replaces them step by step when their template changes.',
  {
    spec: embedded(2, DeploymentSpecSchema, 'Intended state.'),
    status: filled(3, DeploymentStatusSchema, 'Observed state.'),
  },
);
export interface Deployment extends KubeObject, Infer<typeof deployment> {}
export const DeploymentSchema: Schema<Deployment> = deployment;
