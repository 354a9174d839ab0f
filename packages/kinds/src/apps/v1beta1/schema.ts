import {
  always,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  labelSelectorSchema,
  objectMetaSchema,
  optional,
  type Schema,
  s,
  typeMetaFields,
} from '@keelson/core';
import * as old from '../../extensions/v1beta1/schema/index.ts';
import { versionTwin } from '../../versions/version-twin.ts';
import * as v1 from '../v1/schema/index.ts';

const twin = versionTwin('k8s.io.api.apps.v1.', 'k8s.io.api.apps.v1beta1.');
const oldTwin = versionTwin('k8s.io.api.extensions.v1beta1.', 'k8s.io.api.apps.v1beta1.');

export const ScaleSpecSchema: Schema<old.ScaleSpec> = oldTwin(old.ScaleSpecSchema);

const scaleStatus = s.message('k8s.io.api.apps.v1beta1.ScaleStatus', 'Observed size.', {
  replicas: always(1, s.int32(), 'Observed number of pods.'),
  selector: optional(2, s.map(s.string()), 'Labels of the counted pods, as a map.'),
  targetSelector: optional(
    3,
    s.string(),
    'Labels of the counted pods, as a selector text; for selectors that no map can express.',
  ),
});
export const ScaleStatusSchema: Schema<old.ScaleStatus> = scaleStatus;

const scale = s.message('k8s.io.api.apps.v1beta1.Scale', 'Size of something that has replicas.', {
  ...typeMetaFields,
  metadata: optional(1, objectMetaSchema, 'Name and namespace of the object.'),
  spec: embedded(2, ScaleSpecSchema, 'Desired size.'),
  status: filled(3, ScaleStatusSchema, 'Observed size.'),
});
export const ScaleSchema: Schema<old.Scale> = scale;

export const ControllerRevisionSchema: Schema<v1.ControllerRevision> = twin(v1.ControllerRevisionSchema);

export const RollbackConfigSchema: Schema<old.RollbackConfig> = oldTwin(old.RollbackConfigSchema);
export const DeploymentRollbackSchema: Schema<old.DeploymentRollback> = oldTwin(old.DeploymentRollbackSchema);
export const DeploymentSchema: Schema<old.Deployment> = oldTwin(old.DeploymentSchema);
export const DeploymentConditionSchema: Schema<old.DeploymentCondition> = oldTwin(old.DeploymentConditionSchema);
export const DeploymentSpecSchema: Schema<old.DeploymentSpec> = oldTwin(old.DeploymentSpecSchema);
export const DeploymentStatusSchema: Schema<old.DeploymentStatus> = oldTwin(old.DeploymentStatusSchema);
export const DeploymentStrategySchema: Schema<old.DeploymentStrategy> = oldTwin(old.DeploymentStrategySchema);
export const RollingUpdateDeploymentSchema: Schema<old.RollingUpdateDeployment> = oldTwin(
  old.RollingUpdateDeploymentSchema,
);

export const RollingUpdateStatefulSetStrategySchema: Schema<v1.RollingUpdateStatefulSetStrategy> = twin(
  v1.RollingUpdateStatefulSetStrategySchema,
);
export const StatefulSetUpdateStrategySchema: Schema<v1.StatefulSetUpdateStrategy> = twin(
  v1.StatefulSetUpdateStrategySchema,
);
export const StatefulSetConditionSchema: Schema<v1.StatefulSetCondition> = twin(v1.StatefulSetConditionSchema);
export const StatefulSetOrdinalsSchema: Schema<v1.StatefulSetOrdinals> = twin(v1.StatefulSetOrdinalsSchema);
const retentionPolicy: Schema<v1.StatefulSetPersistentVolumeClaimRetentionPolicy> = twin(
  v1.StatefulSetPersistentVolumeClaimRetentionPolicySchema,
);

export { retentionPolicy as StatefulSetPersistentVolumeClaimRetentionPolicySchema };

export interface StatefulSetSpec extends Omit<v1.StatefulSetSpec, 'selector'> {
  selector?: v1.StatefulSetSpec['selector'];
}
export const StatefulSetSpecSchema: Schema<StatefulSetSpec> = withFields(twin(v1.StatefulSetSpecSchema), {
  selector: optional(
    2,
    labelSelectorSchema,
    'Labels by which the pods are recognised; those of the template by default.',
  ),
});

export const StatefulSetStatusSchema: Schema<v1.StatefulSetStatus> = withFields(twin(v1.StatefulSetStatusSchema), {
  observedGeneration: optional(1, s.int64(), 'The metadata.generation that the controller has observed.', {
    presence: true,
  }),
});

const statefulSet = s.message(
  'k8s.io.api.apps.v1beta1.StatefulSet',
  'Keeps a number of pods running that have names and storage of their own.',
  {
    spec: embedded(2, StatefulSetSpecSchema, 'Intended state.'),
    status: filled(3, StatefulSetStatusSchema, 'Observed state.'),
  },
);
export interface StatefulSet extends KubeObject, Infer<typeof statefulSet> {}
export const StatefulSetSchema: Schema<StatefulSet> = statefulSet;

/** A message schema with some fields replaced. The order of the fields is unchanged. */
function withFields<T>({ node }: Schema<T>, fields: Record<string, ReturnType<typeof optional>>): Schema<T> {
  if (node.type !== 'message') throw new TypeError('the schema is not a message');
  return { node: { ...node, fields: { ...node.fields, ...fields } } } as Schema<T>;
}
