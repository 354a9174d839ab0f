import { isDeepStrictEqual } from 'node:util';
import type { AdmissionPlugin, AdmissionRequest, ApiClient, Authorizer, UserInfo } from '@keelson/core';
import { isStatusError, mastersGroup, StatusReason, statusErrors } from '@keelson/core';
import { ClusterRole, type ClusterRoleBinding, type PolicyRule, Role, type RoleBinding } from '@keelson/kinds';
import type { RbacAuthorizer } from './rbac-authorizer.ts';
import { coversPath } from './rules.ts';

export interface EscalationOptions {
  /** Rules of the users. */
  readonly rbac: Pick<RbacAuthorizer, 'policyRulesOf'>;
  /** Decides on the verbs `escalate` and `bind`. */
  readonly authorizer: Pick<Authorizer, 'authorize'>;
  /** Reads the roles of bindings. Called for the first check. */
  readonly client: () => ApiClient;
}

const group = 'rbac.authorization.k8s.io';
/** Greatest number of comparisons of two permissions for one role. */
export const maxComparisons = 200_000;
/** Greatest number of missing permissions in a message. */
const maxListed = 100;

const fullAuthority: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

/**
 * Rejects roles and bindings by which users would grant permissions that they do not have, unless they may use the verb
 * `escalate` on the role or `bind` on the role of the binding. Rules and messages are those of Kubernetes.
 */
export function rbacEscalation(options: EscalationOptions): AdmissionPlugin {
  return {
    name: 'RBACEscalation',
    resources: ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'].map((name) => `${name}.${group}`),
    handles: ({ operation, subresource, context }) =>
      (operation === 'create' || operation === 'update') &&
      subresource === undefined &&
      !context.user.groups.includes(mastersGroup),
    async validate(request) {
      if (onlyOwnershipChanged(request)) return;
      if (request.kind.kind.endsWith('Binding')) await checkBinding(request, options);
      else await checkRole(request, options);
    },
  };
}

/** The garbage collector changes only these fields. */
function onlyOwnershipChanged({ object, oldObject }: AdmissionRequest): boolean {
  if (object === undefined || oldObject === undefined) return false;
  const rest = ({ metadata, ...fields }: NonNullable<typeof object>) => {
    const { ownerReferences: _owners, finalizers: _finalizers, managedFields: _managed, ...others } = metadata ?? {};
    const { resourceVersion: _version, selfLink: _link, ...meta } = others as Record<string, unknown>;
    return { ...fields, metadata: meta };
  };
  return isDeepStrictEqual(rest(object), rest(oldObject));
}

async function may(
  verb: 'bind' | 'escalate',
  resource: string,
  name: string,
  { namespace, context }: AdmissionRequest,
  { authorizer }: EscalationOptions,
): Promise<boolean> {
  const attributes = {
    ...{ verb, resource, name, namespace: namespace ?? '', apiGroup: group, apiVersion: '*' },
    ...{ isResourceRequest: true, subresource: '', path: '' },
  };
  return (await authorizer.authorize(attributes, context.user)).allowed;
}

async function checkRole(request: AdmissionRequest, options: EscalationOptions): Promise<void> {
  const { kind, name, object, oldObject } = request;
  if (await may('escalate', kind.names.plural, name, request, options)) return;
  const { rules = [], aggregationRule } = object as ClusterRole;
  requireHeld(rules, request, options);
  // An aggregated ClusterRole may get any rules from other roles.
  if (!aggregationRule && !(oldObject as ClusterRole | undefined)?.aggregationRule) return;
  const { rules: held } = options.rbac.policyRulesOf(request.context.user, '');
  if (missingRules(held, fullAuthority).length > 0)
    throw refusal(request, 'must have cluster-admin privileges to use the aggregationRule');
}

async function checkBinding(request: AdmissionRequest, options: EscalationOptions): Promise<void> {
  const { roleRef } = request.object as RoleBinding | ClusterRoleBinding;
  const kind = roleRef.kind === 'Role' ? Role : ClusterRole;
  if (await may('bind', kind.names.plural, roleRef.name, request, options)) return;
  const roles = options.client().resource<Role | ClusterRole>(kind);
  const { signal } = request.context;
  const scoped = kind === Role ? roles.namespace(request.namespace ?? '') : roles;
  const { rules = [] } = await scoped.get(roleRef.name, signal ? { signal } : {}).catch((error: unknown) => {
    if (!isStatusError(error, StatusReason.NotFound)) throw error;
    // Kubernetes names the resource of the request, not that of the missing role.
    throw statusErrors.notFound({ group, resource: request.kind.names.plural }, roleRef.name);
  });
  requireHeld(rules, request, options);
}

function refusal({ kind, name }: AdmissionRequest, why: string) {
  return statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, name, why);
}

/** @throws StatusError 403 when the user does not have all permissions of the rules */
function requireHeld(rules: readonly PolicyRule[], request: AdmissionRequest, { rbac }: EscalationOptions): void {
  const { user } = request.context;
  const { rules: held, problems } = rbac.policyRulesOf(user, request.namespace ?? '');
  let missing: PolicyRule[];
  try {
    missing = missingRules(held, rules);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw refusal(request, error.message);
  }
  if (missing.length === 0) return;
  const lines = [...new Set(compactRules(missing).map(ruleText))].sort();
  const shown = lines.slice(0, maxListed);
  if (lines.length > maxListed) shown.push(`... and ${lines.length - maxListed} more`);
  const errors = problems.length === 0 ? '' : `; resolution errors: [${problems.join(' ')}]`;
  throw refusal(request, `${attemptText(user)}:\n${shown.join('\n')}${errors}`);
}

function attemptText({ name, groups }: UserInfo): string {
  const who = `user ${JSON.stringify(name)} (groups=${quotedList(groups)})`;
  return `${who} is attempting to grant RBAC permissions not currently held`;
}

const quotedList = (values: readonly string[]): string => `[${values.map((value) => JSON.stringify(value)).join(' ')}]`;

/** A rule as Kubernetes prints it in this message. */
function ruleText({ apiGroups, resources, nonResourceURLs, resourceNames, verbs }: PolicyRule): string {
  const parts = Object.entries({
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  });
  const given = parts.flatMap(([part, values]) => (values?.length ? [`${part}:${quotedList(values)}`] : []));
  return `{${given.join(', ')}}`;
}

/** Splits a rule into single permissions: one verb on one resource with at most one name, or on one path. */
function* combinationsOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule) {
  for (const apiGroup of apiGroups ?? [])
    for (const resource of resources ?? [])
      for (const verb of verbs)
        for (const resourceName of resourceNames?.length ? resourceNames : [undefined])
          yield {
            verbs: [verb],
            apiGroups: [apiGroup],
            resources: [resource],
            ...(resourceName === undefined ? {} : { resourceNames: [resourceName] }),
          };
  for (const path of nonResourceURLs ?? []) for (const verb of verbs) yield { verbs: [verb], nonResourceURLs: [path] };
}

/**
 * The permissions of `wanted` that `held` does not contain, each for one verb on one resource or path.
 *
 * @throws RangeError when there are too many combinations to compare
 */
export function missingRules(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  const missing: PolicyRule[] = [];
  const distinct = [...new Map(held.map((rule) => [ruleText(rule), rule])).values()];
  const byVerb = new Map<string, PolicyRule[]>();
  for (const rule of distinct)
    for (const verb of new Set(rule.verbs)) byVerb.set(verb, [...(byVerb.get(verb) ?? []), rule]);
  let compared = 0;
  for (const rule of wanted.map(withoutRepetition)) {
    // Usually one rule contains the other, which takes linear time.
    if (distinct.some((owned) => ruleCovers(owned, rule))) continue;
    for (const single of combinationsOf(rule)) {
      const candidates = [byVerb.get(single.verbs[0] ?? '') ?? [], byVerb.get('*') ?? []];
      compared += 1 + candidates.flat().length;
      if (compared > maxComparisons)
        throw new RangeError('the rules have too many combinations of verb, resource and name to be compared');
      if (!candidates.some((rules) => rules.some((owned) => ruleCovers(owned, single)))) missing.push(single);
    }
  }
  return missing;
}

function withoutRepetition(rule: PolicyRule): PolicyRule {
  const lists = Object.entries(rule).map(([field, values]) => [field, [...new Set(values as string[])]]);
  return Object.fromEntries(lists) as PolicyRule;
}

function includesAll(owned: readonly string[] = [], wanted: readonly string[] = []): boolean {
  return owned.includes('*') || wanted.every((value) => owned.includes(value));
}

function coversResources(owned: readonly string[] = [], wanted: readonly string[] = []): boolean {
  if (owned.includes('*')) return true;
  return wanted.every((resource) => {
    const slash = resource.indexOf('/');
    return owned.includes(resource) || (slash > 0 && owned.includes(`*${resource.slice(slash)}`));
  });
}

/** Whether one rule contains every permission of another rule. */
function ruleCovers(owned: PolicyRule, wanted: PolicyRule): boolean {
  const names = wanted.resourceNames ?? [];
  const ownedNames = owned.resourceNames ?? [];
  return (
    includesAll(owned.verbs, wanted.verbs) &&
    includesAll(owned.apiGroups, wanted.apiGroups) &&
    coversResources(owned.resources, wanted.resources) &&
    (wanted.nonResourceURLs ?? []).every((path) =>
      (owned.nonResourceURLs ?? []).some((pattern) => coversPath(pattern, path)),
    ) &&
    (ownedNames.length === 0 || (names.length > 0 && names.every((name) => ownedNames.includes(name))))
  );
}

/** Combines rules for the same resource and name that differ by verb. */
function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const simple = new Map<string, PolicyRule>();
  const others: PolicyRule[] = [];
  for (const rule of rules) {
    if (rule.nonResourceURLs?.length) {
      others.push(rule);
      continue;
    }
    const key = JSON.stringify([rule.apiGroups, rule.resources, rule.resourceNames]);
    const before = simple.get(key);
    if (before === undefined) simple.set(key, { ...rule, verbs: [...rule.verbs] });
    else before.verbs.push(...rule.verbs);
  }
  return [...others, ...simple.values()];
}
