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
import { PersistentVolumeClaimSchema } from '../../../core/v1/schema/volume-claim.ts';

const rollingUpdateStatefulSetStrategy = s.message(
  'k8s.io.api.apps.v1.RollingUpdateStatefulSetStrategy',
  'Extent and pace of a rolling update.',
  {
    partition: optional(1, s.int32(), 'Pods with a lower ordinal keep the old template; 0 by default.', {
      presence: true,
    }),
    maxUnavailable: optional(
      2,
      s.intOrString(),
      'How many pods may be missing during the update: a number or a percentage of replicas, rounded up. Not 0.',
      { presence: true },
    ),
  },
);
export interface RollingUpdateStatefulSetStrategy extends Infer<typeof rollingUpdateStatefulSetStrategy> {}
export const RollingUpdateStatefulSetStrategySchema: Schema<RollingUpdateStatefulSetStrategy> =
  rollingUpdateStatefulSetStrategy;

const statefulSetUpdateStrategy = s.message(
  'k8s.io.api.apps.v1.StatefulSetUpdateStrategy',
  'How pods are replaced by new ones.',
  {
    type: optional(
      1,
      s.string({ values: ['OnDelete', 'RollingUpdate'] }),
      'RollingUpdate, or OnDelete to replace a pod only after it was deleted.',
    ),
    rollingUpdate: optional(2, RollingUpdateStatefulSetStrategySchema, 'Extent and pace, for RollingUpdate only.'),
  },
);
export interface StatefulSetUpdateStrategy extends Infer<typeof statefulSetUpdateStrategy> {}
export const StatefulSetUpdateStrategySchema: Schema<StatefulSetUpdateStrategy> = statefulSetUpdateStrategy;

const statefulSetPersistentVolumeClaimRetentionPolicy = s.message(
  'k8s.io.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy',
  'What becomes of the claims of pods that are gone.',
  {
    whenDeleted: optional(1, s.string(), 'Retain or Delete, when the stateful set is deleted.'),
    whenScaled: optional(2, s.string(), 'Retain or Delete, when pods are removed by scaling.'),
  },
);
export interface StatefulSetPersistentVolumeClaimRetentionPolicy
  extends Infer<typeof statefulSetPersistentVolumeClaimRetentionPolicy> {}
const retentionPolicy: Schema<StatefulSetPersistentVolumeClaimRetentionPolicy> =
  statefulSetPersistentVolumeClaimRetentionPolicy;

export { retentionPolicy as StatefulSetPersistentVolumeClaimRetentionPolicySchema };

const statefulSetOrdinals = s.message('k8s.io.api.apps.v1.StatefulSetOrdinals', 'How pods are numbered.', {
  start: filled(1, s.int32(), 'Number of the first pod; 0 by default.'),
});
export interface StatefulSetOrdinals extends Infer<typeof statefulSetOrdinals> {}
export const StatefulSetOrdinalsSchema: Schema<StatefulSetOrdinals> = statefulSetOrdinals;

const statefulSetSpec = s.message('k8s.io.api.apps.v1.StatefulSetSpec', 'Intended state of a stateful set.', {
  replicas: optional(1, s.int32(), 'Desired number of pods; 1 by default.', { presence: true }),
  selector: required(2, labelSelectorSchema, 'Labels by which the pods are recognised; must fit the template.'),
  template: always(3, PodTemplateSpecSchema, 'Template of the pods, which are named NAME-ORDINAL.'),
  volumeClaimTemplates: optional(
    4,
    s.list(PersistentVolumeClaimSchema, { listType: 'atomic' }),
    'Claims that every pod has for itself; each takes the place of a volume of its name.',
  ),
  serviceName: filled(5, s.string(), 'Headless service that gives the pods their names in DNS.'),
  podManagementPolicy: optional(
    6,
    s.string({ values: ['OrderedReady', 'Parallel'] }),
    'OrderedReady to make pods one by one, or Parallel.',
  ),
  updateStrategy: filled(7, StatefulSetUpdateStrategySchema, 'How pods are replaced by new ones.'),
  revisionHistoryLimit: optional(8, s.int32(), 'How many old revisions are kept for rolling back.', { presence: true }),
  minReadySeconds: optional(9, s.int32(), 'Seconds for which a pod must have been ready to count as available.'),
  persistentVolumeClaimRetentionPolicy: optional(
    10,
    retentionPolicy,
    'What becomes of the claims of pods that are gone.',
  ),
  ordinals: optional(11, StatefulSetOrdinalsSchema, 'How pods are numbered.'),
});
export interface StatefulSetSpec extends Infer<typeof statefulSetSpec> {}
export const StatefulSetSpecSchema: Schema<StatefulSetSpec> = statefulSetSpec;

const statefulSetCondition = s.message(
  'k8s.io.api.apps.v1.StatefulSetCondition',
  'One observed condition of a stateful set.',
  {
    type: always(1, s.string(), 'Type of the condition.'),
    status: always(2, s.string(), 'True, False or Unknown.'),
    lastTransitionTime: optional(3, s.time(), 'When status last changed.'),
    reason: optional(4, s.string(), 'Reason for the last transition, one CamelCase word.'),
    message: optional(5, s.string(), 'Human-readable message about the last change.'),
  },
);
export interface StatefulSetCondition extends Infer<typeof statefulSetCondition> {}
export const StatefulSetConditionSchema: Schema<StatefulSetCondition> = statefulSetCondition;

const statefulSetStatus = s.message('k8s.io.api.apps.v1.StatefulSetStatus', 'Observed state of a stateful set.', {
  observedGeneration: optional(1, s.int64(), 'The metadata.generation that the controller has observed.'),
  replicas: always(2, s.int32(), 'Number of pods.'),
  readyReplicas: optional(3, s.int32(), 'Pods that are ready.'),
  currentReplicas: optional(4, s.int32(), 'Pods of the revision currentRevision.'),
  updatedReplicas: optional(5, s.int32(), 'Pods of the revision updateRevision.'),
  currentRevision: optional(6, s.string(), 'Revision from which an update starts.'),
  updateRevision: optional(7, s.string(), 'Revision of the present template.'),
  collisionCount: optional(9, s.int32(), "How often a name for a new revision was taken; part of the name's hash.", {
    presence: true,
  }),
  conditions: optional(10, s.listByKey(StatefulSetConditionSchema, 'type'), 'Latest observations.'),
  availableReplicas: filled(11, s.int32(), 'Pods that have been ready for minReadySeconds.'),
});
export interface StatefulSetStatus extends Infer<typeof statefulSetStatus> {}
export const StatefulSetStatusSchema: Schema<StatefulSetStatus> = statefulSetStatus;

const statefulSet = s.message(
  'k8s.io.api.apps.v1.StatefulSet',
  'Keeps a number of pods running that have names and storage of their own.',
  {
    spec: embedded(2, StatefulSetSpecSchema, 'Intended state.'),
    status: filled(3, StatefulSetStatusSchema, 'Observed state.'),
  },
);
export interface StatefulSet extends KubeObject, Infer<typeof statefulSet> {}
export const StatefulSetSchema: Schema<StatefulSet> = statefulSet;

const controllerRevision = s.message(
  'k8s.io.api.apps.v1.ControllerRevision',
  'A state that a controller keeps, to be able to return to it.',
  {
    data: optional(2, s.raw(), 'The state, which only its controller reads.'),
    revision: always(3, s.int64(), 'Number of the state; later ones are greater.'),
  },
);
export interface ControllerRevision extends KubeObject, Infer<typeof controllerRevision> {}
export const ControllerRevisionSchema: Schema<ControllerRevision> = controllerRevision;
