import { defineKind, type FieldError, fieldError, type KindDefinition } from '@keelson/core';
import { checkLabelSelector, type Errors, newErrors } from '../../validation/checks.ts';
import {
  ClusterRoleSchema,
  type ClusterRole as ClusterRoleType,
  type PolicyRule,
  RoleSchema,
  type Role as RoleType,
} from './schema/index.ts';

const gv = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
/** Names may contain `:`, as in `system:node`. */
const base = { nameRule: 'pathSegment', allowCreateOnUpdate: true } as const;

/** Strategy of the kind Role, for all API versions. */
export const roleStrategy = {
  ...base,
  validate({ rules }: RoleType): FieldError[] {
    const errors = newErrors();
    checkRules(rules, true, errors);
    return errors;
  },
};

/** Strategy of the kind ClusterRole, for all API versions. */
export const clusterRoleStrategy = {
  ...base,
  validate({ rules, aggregationRule }: ClusterRoleType): FieldError[] {
    const errors = newErrors();
    checkRules(rules, false, errors);
    if (!aggregationRule) return errors;
    const path = 'aggregationRule.clusterRoleSelectors';
    const selectors = aggregationRule.clusterRoleSelectors ?? [];
    if (selectors.length === 0) {
      const detail = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
      errors.push(fieldError.required(path, detail));
    }
    for (const [i, selector] of selectors.entries()) checkLabelSelector(selector, `${path}[${i}]`, errors);
    return errors;
  },
};

/** Permissions within one namespace. */
export const Role: KindDefinition<RoleType> = defineKind({
  ...gv,
  kind: 'Role',
  schema: RoleSchema,
  strategy: roleStrategy,
});
export type Role = RoleType;

/** Permissions that a binding grants in one namespace or everywhere. */
export const ClusterRole: KindDefinition<ClusterRoleType> = defineKind({
  ...gv,
  kind: 'ClusterRole',
  scope: 'Cluster',
  schema: ClusterRoleSchema,
  strategy: clusterRoleStrategy,
});
export type ClusterRole = ClusterRoleType;

function checkRules(rules: readonly PolicyRule[] = [], namespaced: boolean, errors: Errors): void {
  for (const [i, rule] of rules.entries()) checkRule(rule, namespaced, `rules[${i}]`, errors);
}

function checkRule(rule: PolicyRule, namespaced: boolean, path: string, errors: Errors): void {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  if (verbs.length === 0) errors.push(fieldError.required(`${path}.verbs`, 'verbs must contain at least one value'));
  if (nonResourceURLs.length > 0) {
    const invalid = (detail: string) =>
      errors.push(fieldError.invalid(`${path}.nonResourceURLs`, nonResourceURLs, detail));
    if (namespaced) invalid('namespaced rules cannot apply to non-resource URLs');
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      invalid('rules cannot apply to both regular resources and non-resource URLs');
    }
    return;
  }
  if (apiGroups.length === 0) {
    errors.push(fieldError.required(`${path}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if (resources.length === 0) {
    errors.push(fieldError.required(`${path}.resources`, 'resource rules must supply at least one resource'));
  }
}
