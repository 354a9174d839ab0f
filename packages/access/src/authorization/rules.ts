import type { AccessAttributes, AccessRules, PathAccessRule, ResourceAccessRule } from '@keelson/core';
import type { PolicyRule } from '@keelson/kinds';

function has(values: readonly string[], value: string): boolean {
  return values.includes('*') || values.includes(value);
}

/** Whether a rule applies to verb, group and resource of a request, whatever the name in the request. */
export function coversResource(rule: ResourceAccessRule, attributes: AccessAttributes): boolean {
  const { verb, apiGroup, resource, subresource } = attributes;
  if (!has(rule.verbs, verb) || !has(rule.apiGroups, apiGroup)) return false;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  return has(rule.resources, full) || (subresource !== '' && rule.resources.includes(`*/${subresource}`));
}

function coversName({ resourceNames = [] }: ResourceAccessRule, name: string): boolean {
  return resourceNames.length === 0 || resourceNames.includes(name);
}

/** Whether a path, which ends with `*` or not, includes another path. */
export function coversPath(pattern: string, path: string): boolean {
  return pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.replace(/\*+$/, '')));
}

/** Whether a rule allows a request for a path. */
export function allowsPath(rule: PathAccessRule, { verb, path }: AccessAttributes): boolean {
  return has(rule.verbs, verb) && rule.nonResourceURLs.some((pattern) => coversPath(pattern, path));
}

/** Whether a rule allows a request. A rule without names allows every name. */
export function rulesAllow(rules: AccessRules, attributes: AccessAttributes): boolean {
  return attributes.isResourceRequest
    ? rules.resourceRules.some((rule) => coversResource(rule, attributes) && coversName(rule, attributes.name))
    : rules.nonResourceRules.some((rule) => allowsPath(rule, attributes));
}

/** The rules of roles as access rules. A rule that has paths applies to no resources. */
export function accessRulesOf(rules: readonly PolicyRule[]): AccessRules {
  return {
    resourceRules: rules.flatMap(({ verbs, apiGroups = [], resources = [], resourceNames, nonResourceURLs }) =>
      nonResourceURLs?.length
        ? []
        : [{ verbs, apiGroups, resources, ...(resourceNames?.length ? { resourceNames } : {}) }],
    ),
    nonResourceRules: rules.flatMap(({ verbs, nonResourceURLs = [] }) =>
      nonResourceURLs.length === 0 ? [] : [{ verbs, nonResourceURLs }],
    ),
    incomplete: false,
  };
}

/** The union of several sets of rules. */
export function joinRules(sets: readonly AccessRules[]): AccessRules {
  const errors = sets.flatMap(({ evaluationError = '' }) => (evaluationError === '' ? [] : [evaluationError]));
  return {
    resourceRules: sets.flatMap(({ resourceRules }) => resourceRules),
    nonResourceRules: sets.flatMap(({ nonResourceRules }) => nonResourceRules),
    incomplete: sets.some(({ incomplete }) => incomplete),
    ...(errors.length === 0 ? {} : { evaluationError: errors.join('\n') }),
  };
}
