import {
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';
import * as apps from '../../../apps/v1/schema/index.ts';
import { PodTemplateSpecSchema } from '../../../core/v1/schema/pod.ts';
import { versionTwin } from '../../../versions/version-twin.ts';

const twin = versionTwin('k8s.io.api.apps.v1.', 'k8s.io.api.extensions.v1beta1.');

const replicaSetSpec = s.message('k8s.io.api.extensions.v1beta1.ReplicaSetSpec', 'Intended state of a replica set.', {
  replicas: optional(1, s.int32(), 'Desired number of pods; 1 by default.', { presence: true }),
  minReadySeconds: optional(4, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  selector: optional(
    2,
    labelSelectorSchema,
    'Labels by which the pods are recognised; those of the template by default.',
  ),
  template: embedded(3, PodTemplateSpecSchema, 'Template of the pods.'),
});
export interface ReplicaSetSpec extends Infer<typeof replicaSetSpec> {}
export const ReplicaSetSpecSchema: Schema<ReplicaSetSpec> = replicaSetSpec;

export type ReplicaSetCondition = apps.ReplicaSetCondition;
export const ReplicaSetConditionSchema: Schema<ReplicaSetCondition> = twin(apps.ReplicaSetConditionSchema);

export type ReplicaSetStatus = apps.ReplicaSetStatus;
export const ReplicaSetStatusSchema: Schema<ReplicaSetStatus> = twin(apps.ReplicaSetStatusSchema);

const replicaSet = s.message('k8s.io.api.extensions.v1beta1.ReplicaSet', 'Keeps a number of equal pods running.', {
  spec: embedded(2, ReplicaSetSpecSchema, 'Intended state.'),
  status: filled(3, ReplicaSetStatusSchema, 'Observed state.'),
});
export interface ReplicaSet extends KubeObject, Infer<typeof replicaSet> {}
export const ReplicaSetSchema: Schema<ReplicaSet> = replicaSet;
