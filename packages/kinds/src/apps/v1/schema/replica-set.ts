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

const replicaSetSpec = s.message('k8s.io.api.apps.v1.ReplicaSetSpec', 'Intended state of a replica set.', {
  replicas: optional(1, s.int32(), 'Desired number of pods; 1 by default.', { presence: true }),
  minReadySeconds: optional(4, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  selector: required(2, labelSelectorSchema, 'Labels by which the pods are recognised; must fit the template.'),
  template: embedded(3, PodTemplateSpecSchema, 'Template of the pods.'),
});
export interface ReplicaSetSpec extends Infer<typeof replicaSetSpec> {}
export const ReplicaSetSpecSchema: Schema<ReplicaSetSpec> = replicaSetSpec;

const replicaSetCondition = s.message(
  'k8s.io.api.apps.v1.ReplicaSetCondition',
  'One observed condition of a replica set.',
  {
    type: always(1, s.string(), 'Type of the condition, e.g. ReplicaFailure.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastTransitionTime: optional(3, s.time(), 'When status last changed.'),
    reason: optional(4, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(5, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface ReplicaSetCondition extends Infer<typeof replicaSetCondition> {}
export const ReplicaSetConditionSchema: Schema<ReplicaSetCondition> = replicaSetCondition;

const replicaSetStatus = s.message('k8s.io.api.apps.v1.ReplicaSetStatus', 'Observed state of a replica set.', {
  replicas: always(1, s.int32(), 'Number of pods, without terminating ones.'),
  fullyLabeledReplicas: optional(2, s.int32(), 'Pods that carry all labels of the template.'),
  readyReplicas: optional(4, s.int32(), 'Pods that are ready.'),
  availableReplicas: optional(5, s.int32(), 'Pods that have been ready for minReadySeconds.'),
  terminatingReplicas: optional(7, s.int32(), 'Pods that are ending.', { presence: true }),
  observedGeneration: optional(3, s.int64(), 'The metadata.generation that the controller has observed.'),
  conditions: optional(6, s.listByKey(ReplicaSetConditionSchema, 'type'), 'Latest observations.'),
});
export interface ReplicaSetStatus extends Infer<typeof replicaSetStatus> {}
export const ReplicaSetStatusSchema: Schema<ReplicaSetStatus> = replicaSetStatus;

const replicaSet = s.message('k8s.io.api.apps.v1.ReplicaSet', 'Keeps a number of equal pods running.', {
  spec: embedded(2, ReplicaSetSpecSchema, 'Intended state.'),
  status: filled(3, ReplicaSetStatusSchema, 'Observed state.'),
});
export interface ReplicaSet extends KubeObject, Infer<typeof replicaSet> {}
export const ReplicaSetSchema: Schema<ReplicaSet> = replicaSet;
