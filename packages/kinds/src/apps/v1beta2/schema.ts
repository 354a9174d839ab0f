import type { Schema } from '@keelson/core';
import * as old from '../../extensions/v1beta1/schema/index.ts';
import { versionTwin } from '../../versions/version-twin.ts';
import * as v1 from '../v1/schema/index.ts';

const twin = versionTwin('k8s.io.api.apps.v1.', 'k8s.io.api.apps.v1beta2.');
const scaleTwin = versionTwin('k8s.io.api.extensions.v1beta1.', 'k8s.io.api.apps.v1beta2.');

export const ScaleSchema: Schema<old.Scale> = scaleTwin(old.ScaleSchema);
export const ScaleSpecSchema: Schema<old.ScaleSpec> = scaleTwin(old.ScaleSpecSchema);
export const ScaleStatusSchema: Schema<old.ScaleStatus> = scaleTwin(old.ScaleStatusSchema);

export const ControllerRevisionSchema: Schema<v1.ControllerRevision> = twin(v1.ControllerRevisionSchema);
export const DaemonSetSchema: Schema<v1.DaemonSet> = twin(v1.DaemonSetSchema);
export const DaemonSetConditionSchema: Schema<v1.DaemonSetCondition> = twin(v1.DaemonSetConditionSchema);
export const DaemonSetSpecSchema: Schema<v1.DaemonSetSpec> = twin(v1.DaemonSetSpecSchema);
export const DaemonSetStatusSchema: Schema<v1.DaemonSetStatus> = twin(v1.DaemonSetStatusSchema);
export const DaemonSetUpdateStrategySchema: Schema<v1.DaemonSetUpdateStrategy> = twin(v1.DaemonSetUpdateStrategySchema);
export const DeploymentSchema: Schema<v1.Deployment> = twin(v1.DeploymentSchema);
export const DeploymentConditionSchema: Schema<v1.DeploymentCondition> = twin(v1.DeploymentConditionSchema);
export const DeploymentSpecSchema: Schema<v1.DeploymentSpec> = twin(v1.DeploymentSpecSchema);
export const DeploymentStatusSchema: Schema<v1.DeploymentStatus> = twin(v1.DeploymentStatusSchema);
export const DeploymentStrategySchema: Schema<v1.DeploymentStrategy> = twin(v1.DeploymentStrategySchema);
export const ReplicaSetSchema: Schema<v1.ReplicaSet> = twin(v1.ReplicaSetSchema);
export const ReplicaSetConditionSchema: Schema<v1.ReplicaSetCondition> = twin(v1.ReplicaSetConditionSchema);
export const ReplicaSetSpecSchema: Schema<v1.ReplicaSetSpec> = twin(v1.ReplicaSetSpecSchema);
export const ReplicaSetStatusSchema: Schema<v1.ReplicaSetStatus> = twin(v1.ReplicaSetStatusSchema);
export const RollingUpdateDaemonSetSchema: Schema<v1.RollingUpdateDaemonSet> = twin(v1.RollingUpdateDaemonSetSchema);
export const RollingUpdateDeploymentSchema: Schema<v1.RollingUpdateDeployment> = twin(v1.RollingUpdateDeploymentSchema);
export const RollingUpdateStatefulSetStrategySchema: Schema<v1.RollingUpdateStatefulSetStrategy> = twin(
  v1.RollingUpdateStatefulSetStrategySchema,
);
export const StatefulSetSchema: Schema<v1.StatefulSet> = twin(v1.StatefulSetSchema);
export const StatefulSetConditionSchema: Schema<v1.StatefulSetCondition> = twin(v1.StatefulSetConditionSchema);
export const StatefulSetOrdinalsSchema: Schema<v1.StatefulSetOrdinals> = twin(v1.StatefulSetOrdinalsSchema);
const retentionPolicy: Schema<v1.StatefulSetPersistentVolumeClaimRetentionPolicy> = twin(
  v1.StatefulSetPersistentVolumeClaimRetentionPolicySchema,
);

export { retentionPolicy as StatefulSetPersistentVolumeClaimRetentionPolicySchema };
export const StatefulSetSpecSchema: Schema<v1.StatefulSetSpec> = twin(v1.StatefulSetSpecSchema);
export const StatefulSetStatusSchema: Schema<v1.StatefulSetStatus> = twin(v1.StatefulSetStatusSchema);
export const StatefulSetUpdateStrategySchema: Schema<v1.StatefulSetUpdateStrategy> = twin(
  v1.StatefulSetUpdateStrategySchema,
);
