import { fieldError, type LabelSelectorSpec, qualifiedNameErrors } from '@keelson/core';
import { checkOneOf, checkText, checkUnique, type Errors, pushInvalid } from '../../validation/checks.ts';
import type { MatchCondition, RuleWithOperations } from './schema/rules.ts';

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const scopes = ['*', 'Cluster', 'Namespaced'];
const maxConditions = 64;

/** The fields by which webhooks and policies select requests besides rules. */
interface RequestSelection {
  matchPolicy?: string | undefined;
  namespaceSelector?: LabelSelectorSpec | undefined;
  objectSelector?: LabelSelectorSpec | undefined;
}

/** Sets the defaults of the fields by which a webhook or policy selects requests. */
export function defaultSelection(selection: RequestSelection, rules: readonly RuleWithOperations[]): void {
  selection.matchPolicy ??= 'Equivalent';
  selection.namespaceSelector ??= {};
  selection.objectSelector ??= {};
  for (const rule of rules) rule.scope ??= '*';
}

/** Validates a rule of a webhook or policy. */
export function checkRule(rule: RuleWithOperations, path: string, errors: Errors): void {
  checkList(rule.operations, 'operations', `${path}.operations`, errors);
  for (const [i, operation] of (rule.operations ?? []).entries()) {
    if (!operations.includes(operation))
      errors.push(fieldError.notSupported(`${path}.operations[${i}]`, operation, operations));
  }
  checkList(rule.apiGroups, 'API groups', `${path}.apiGroups`, errors);
  checkList(rule.apiVersions, 'API versions', `${path}.apiVersions`, errors);
  for (const [i, version] of (rule.apiVersions ?? []).entries())
    checkText(version, `${path}.apiVersions[${i}]`, errors);
  checkResources(rule.resources ?? [], `${path}.resources`, errors);
  checkOneOf(rule.scope, scopes, `${path}.scope`, errors);
}

function checkList(values: readonly string[] = [], what: string, path: string, errors: Errors): void {
  if (values.length === 0) errors.push(fieldError.required(path));
  if (values.length > 1 && values.includes('*'))
    errors.push(fieldError.invalid(path, values, `if '*' is present, must not specify other ${what}`));
}

function checkResources(resources: readonly string[], path: string, errors: Errors): void {
  if (resources.length === 0) errors.push(fieldError.required(path));
  const anySubresource = new Set<string>();
  const anyResource = new Set<string>();
  // Only the last entry without a subresource is compared with `*`, as in Kubernetes.
  let plain = false;
  for (const [i, entry] of resources.entries()) {
    const place = `${path}[${i}]`;
    if (!checkText(entry, place, errors)) continue;
    const slash = entry.indexOf('/');
    if (slash < 0) {
      plain = entry !== '*';
      continue;
    }
    const resource = entry.slice(0, slash);
    const subresource = entry.slice(slash + 1);
    if (anySubresource.has(resource))
      errors.push(fieldError.invalid(place, entry, `if '${resource}/*' is present, must not specify ${entry}`));
    if (anyResource.has(subresource))
      errors.push(fieldError.invalid(place, entry, `if '*/${subresource}' is present, must not specify ${entry}`));
    if (subresource === '*') anySubresource.add(resource);
    if (resource === '*') anyResource.add(subresource);
  }
  if (resources.length > 1 && resources.includes('*/*'))
    errors.push(fieldError.invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  if (resources.includes('*') && plain) {
    const text = "if '*' is present, must not specify other resources without subresources";
    errors.push(fieldError.invalid(path, resources, text));
  }
}

/** Validates names of conditions; their expressions are compiled by the admission that evaluates them. */
export function checkMatchConditions(conditions: readonly MatchCondition[] = [], path: string, errors: Errors): void {
  if (conditions.length > maxConditions) errors.push(fieldError.tooMany(path, conditions.length, maxConditions));
  const names = new Set<string>();
  for (const [i, { name, expression }] of conditions.entries()) {
    checkText(expression.trim(), `${path}[${i}].expression`, errors);
    const place = `${path}[${i}].name`;
    if (!checkText(name, place, errors)) continue;
    pushInvalid(qualifiedNameErrors(name), name, place, errors);
    checkUnique(name, names, place, errors);
  }
}
