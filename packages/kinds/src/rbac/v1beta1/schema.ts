import type { Schema } from '@keelson/core';
import { versionTwin } from '../../versions/version-twin.ts';
import * as v1 from '../v1/schema/index.ts';

const twin = versionTwin('k8s.io.api.rbac.v1.', 'k8s.io.api.rbac.v1beta1.');

export const PolicyRuleSchema: Schema<v1.PolicyRule> = twin(v1.PolicyRuleSchema);
export const AggregationRuleSchema: Schema<v1.AggregationRule> = twin(v1.AggregationRuleSchema);
export const RoleSchema: Schema<v1.Role> = twin(v1.RoleSchema);
export const ClusterRoleSchema: Schema<v1.ClusterRole> = twin(v1.ClusterRoleSchema);
export const RoleRefSchema: Schema<v1.RoleRef> = twin(v1.RoleRefSchema);
export const SubjectSchema: Schema<v1.Subject> = twin(v1.SubjectSchema);
export const RoleBindingSchema: Schema<v1.RoleBinding> = twin(v1.RoleBindingSchema);
export const ClusterRoleBindingSchema: Schema<v1.ClusterRoleBinding> = twin(v1.ClusterRoleBindingSchema);
