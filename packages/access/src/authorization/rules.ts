import type { AccessAttributes, AccessRules, PathAccessRule, ResourceAccessRule } from '@keelson/core';

function has(words: readonly string[], word: string): boolean {
  return words.includes('*') || words.includes(word);
}

function coversResource(rule: ResourceAccessRule, attributes: AccessAttributes): boolean {
  const { verb, apiGroup, resource, subresource, name } = attributes;
  if (!has(rule.verbs, verb) || !has(rule.apiGroups, apiGroup)) return false;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  if (!has(rule.resources, full) && !(subresource !== '' && rule.resources.includes(`*/${subresource}`))) return false;
  const names = rule.resourceNames ?? [];
  return names.length === 0 || names.includes(name);
}

function coversPath(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

function allowsPath(rule: PathAccessRule, { verb, path }: AccessAttributes): boolean {
  return has(rule.verbs, verb) && rule.nonResourceURLs.some((pattern) => coversPath(pattern, path));
}

/** Whether a rule allows a request. A rule without names allows every name. */
export function rulesAllow(rules: AccessRules, attributes: AccessAttributes): boolean {
  return attributes.isResourceRequest
    ? rules.resourceRules.some((rule) => coversResource(rule, attributes))
    : rules.nonResourceRules.some((rule) => allowsPath(rule, attributes));
}

/** The union of several sets of rules. */
export function joinRules(sets: readonly AccessRules[]): AccessRules {
  return {
    resourceRules: sets.flatMap(({ resourceRules }) => resourceRules),
    nonResourceRules: sets.flatMap(({ nonResourceRules }) => nonResourceRules),
    incomplete: sets.some(({ incomplete }) => incomplete),
  };
}
