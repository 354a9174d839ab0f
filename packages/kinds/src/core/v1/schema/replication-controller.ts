import { always, embedded, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { PodTemplateSpecSchema } from './pod.ts';

const replicationControllerSpec = s.message(
  'k8s.io.api.core.v1.ReplicationControllerSpec',
  'Intended state of a replication controller.',
  {
    replicas: optional(1, s.int32(), 'Desired number of pods; 1 by default.', { presence: true }),
    minReadySeconds: optional(4, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
    selector: optional(
      2,
      s.map(s.string(), { mapType: 'atomic' }),
      'Labels by which the pods are recognised; those of the template by default.',
    ),
    template: optional(3, PodTemplateSpecSchema, 'Template of the pods.'),
  },
);
export interface ReplicationControllerSpec extends Infer<typeof replicationControllerSpec> {}
export const ReplicationControllerSpecSchema: Schema<ReplicationControllerSpec> = replicationControllerSpec;

const replicationControllerCondition = s.message(
  'k8s.io.api.core.v1.ReplicationControllerCondition',
  'One observed condition of a replication controller.',
  {
    type: always(1, s.string(), 'Type of the condition, e.g. ReplicaFailure.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastTransitionTime: optional(3, s.time(), 'When status last changed.'),
    reason: optional(4, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(5, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface ReplicationControllerCondition extends Infer<typeof replicationControllerCondition> {}
export const ReplicationControllerConditionSchema: Schema<ReplicationControllerCondition> =
  replicationControllerCondition;

const replicationControllerStatus = s.message(
  'k8s.io.api.core.v1.ReplicationControllerStatus',
  'Observed state of a replication controller.',
  {
    replicas: always(1, s.int32(), 'Number of pods.'),
    fullyLabeledReplicas: optional(2, s.int32(), 'Pods that carry all labels of the template.'),
    readyReplicas: optional(4, s.int32(), 'Pods that are ready.'),
    availableReplicas: optional(5, s.int32(), 'Pods that have been ready for minReadySeconds.'),
    observedGeneration: optional(3, s.int64(), 'The metadata.generation that the controller has observed.'),
    conditions: optional(6, s.listByKey(ReplicationControllerConditionSchema, 'type'), 'Latest observations.'),
  },
);
export interface ReplicationControllerStatus extends Infer<typeof replicationControllerStatus> {}
export const ReplicationControllerStatusSchema: Schema<ReplicationControllerStatus> = replicationControllerStatus;

const replicationController = s.message(
  'k8s.io.api.core.v1.ReplicationController',
  'Keeps a number of equal pods running; replica sets are its successor.',
  {
    spec: embedded(2, ReplicationControllerSpecSchema, 'Intended state.'),
    status: filled(3, ReplicationControllerStatusSchema, 'Observed state.'),
  },
);
export interface ReplicationController extends KubeObject, Infer<typeof replicationController> {}
export const ReplicationControllerSchema: Schema<ReplicationController> = replicationController;
