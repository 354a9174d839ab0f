import {
  always,
  filled,
  type Infer,
  type KubeObject,
  type LabelSelectorObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';

const atomicTexts = s.list(s.string(), { listType: 'atomic' });

const policyRule = s.message('k8s.io.api.rbac.v1.PolicyRule', 'Verbs on resources, or verbs on paths.', {
  verbs: always(1, atomicTexts, 'Allowed verbs; `*` stands for all.'),
  apiGroups: optional(2, atomicTexts, 'Groups of the resources; an empty text is the core group, `*` all groups.'),
  resources: optional(3, atomicTexts, 'Resources such as `pods`, `pods/log`, `*/scale`; `*` stands for all.'),
  resourceNames: optional(4, atomicTexts, 'Names to which the rule is restricted; none means every name.'),
  nonResourceURLs: optional(5, atomicTexts, 'Paths outside resources; `*` is allowed as the last character.'),
});
export interface PolicyRule extends Infer<typeof policyRule> {}
export const PolicyRuleSchema: Schema<PolicyRule> = policyRule;

const aggregationRule = s.message(
  'k8s.io.api.rbac.v1.AggregationRule',
  'Selects the cluster roles whose rules a cluster role collects.',
  {
    clusterRoleSelectors: optional(
      1,
      s.list<LabelSelectorObject>(labelSelectorSchema, { listType: 'atomic' }),
      'A cluster role that one of these selectors matches is collected.',
    ),
  },
);
export interface AggregationRule extends Infer<typeof aggregationRule> {}
export const AggregationRuleSchema: Schema<AggregationRule> = aggregationRule;

const rules = s.list(PolicyRuleSchema, { listType: 'atomic' });

const role = s.message('k8s.io.api.rbac.v1.Role', 'Permissions within one namespace.', {
  rules: filled(2, rules, 'The permissions of the role.'),
});
export interface Role extends KubeObject, Infer<typeof role> {}
export const RoleSchema: Schema<Role> = role;

const clusterRole = s.message(
  'k8s.io.api.rbac.v1.ClusterRole',
  'Permissions that a binding grants in one namespace or everywhere.',
  {
    rules: filled(2, rules, 'The permissions of the role; a controller sets them when aggregationRule is set.'),
    aggregationRule: optional(3, AggregationRuleSchema, 'Selects cluster roles whose rules are collected here.'),
  },
);
export interface ClusterRole extends KubeObject, Infer<typeof clusterRole> {}
export const ClusterRoleSchema: Schema<ClusterRole> = clusterRole;
