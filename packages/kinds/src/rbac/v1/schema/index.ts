export {
  type ClusterRoleBinding,
  ClusterRoleBindingSchema,
  type RoleBinding,
  RoleBindingSchema,
  type RoleRef,
  RoleRefSchema,
  type Subject,
  SubjectSchema,
} from './bindings.ts';
export {
  type AggregationRule,
  AggregationRuleSchema,
  type ClusterRole,
  ClusterRoleSchema,
  type PolicyRule,
  PolicyRuleSchema,
  type Role,
  RoleSchema,
} from './roles.ts';
