import type { AccessAttributes, UserInfo } from '@keelson/core';
import type { ClusterRoleBinding, PolicyRule, RoleBinding } from '@keelson/kinds';

/** Roles and bindings; roles and bindings without a namespace are those of the cluster. */
export interface RoleGraph {
  readonly roles: readonly { readonly namespace: string; readonly name: string; readonly rules: PolicyRule[] }[];
  readonly bindings: readonly (RoleBinding | ClusterRoleBinding)[];
}

export type Random = (bound: number) => number;

export const names = ['', 'one', 'two'];
export const verbs = ['get', 'list', 'create', 'delete', 'watch'];
export const groups = ['', 'apps', 'batch'];
const namespaces = ['', 'a', 'b'];
const resources = ['pods', 'deployments', 'secrets'];
const subresources = ['', '', 'log', 'scale'];
const paths = ['/healthz', '/healthz/etcd', '/metrics', '/', '/api'];
const groupNames = ['devs', 'ops', 'system:authenticated'];
const userNames = ['jane', 'bob', 'system:serviceaccount:a:robot', 'system:serviceaccount:b:robot'];
const ruleResources = [...resources, '*', 'pods/log', '*/scale', 'deployments/scale', 'pods/*', 'deployments/*'];
const rulePaths = [...paths, '*', '/healthz/*', '/health*', '/metrics/*'];

const pick = <T>(random: Random, values: readonly T[]): T => values[random(values.length)] as T;
const some = <T>(random: Random, values: readonly T[], most = 2): T[] =>
  Array.from({ length: 1 + random(most) }, () => pick(random, values));
const none = <T>(_random: Random): T[] => [];

function randomRule(random: Random, namespaced: boolean): PolicyRule {
  const verbsOf = random(5) === 0 ? ['*'] : some(random, verbs);
  if (!namespaced && random(4) === 0) return { verbs: verbsOf, nonResourceURLs: some(random, rulePaths) };
  return {
    verbs: verbsOf,
    apiGroups: random(6) === 0 ? ['*'] : some(random, groups),
    resources: some(random, ruleResources),
    ...(random(3) === 0 ? { resourceNames: random(4) === 0 ? none(random) : some(random, names) } : {}),
  };
}

function randomSubject(random: Random, namespaced: boolean) {
  const kind = pick(random, ['User', 'Group', 'ServiceAccount']);
  if (kind === 'User') return { kind, name: pick(random, userNames) };
  if (kind === 'Group') return { kind, name: pick(random, groupNames) };
  return { kind, name: 'robot', ...(namespaced && random(2) === 0 ? {} : { namespace: pick(random, ['a', 'b']) }) };
}

/** Some roles in every scope, and bindings to them and to a role that does not exist. */
export function randomGraph(random: Random): RoleGraph {
  const roles = namespaces.flatMap((namespace) =>
    ['x', 'y', 'z'].map((name) => ({
      namespace,
      name,
      rules: Array.from({ length: 1 + random(5) }, () => randomRule(random, namespace !== '')),
    })),
  );
  const bindings = Array.from({ length: 40 }, (_, i) => {
    const namespace = pick(random, namespaces);
    const kind = namespace !== '' && random(2) === 0 ? 'Role' : 'ClusterRole';
    return {
      metadata: { name: `b${i}`, ...(namespace === '' ? {} : { namespace }) },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: pick(random, ['x', 'y', 'z', 'missing']) },
      subjects: Array.from({ length: random(4) }, () => randomSubject(random, namespace !== '')),
    } as RoleBinding;
  });
  return { roles, bindings };
}

/** A request of a random user for a resource or a path. */
export function randomQuestion(random: Random): { attributes: AccessAttributes; user: UserInfo } {
  const isResourceRequest = random(5) > 0;
  const user = { name: pick(random, userNames), groups: random(2) === 0 ? [] : some(random, groupNames) };
  const resource = isResourceRequest ? pick(random, resources) : '';
  return {
    user,
    attributes: {
      verb: pick(random, verbs),
      isResourceRequest,
      apiGroup: isResourceRequest ? pick(random, groups) : '',
      apiVersion: isResourceRequest ? 'v1' : '',
      namespace: isResourceRequest ? pick(random, namespaces) : '',
      resource,
      subresource: isResourceRequest ? pick(random, subresources) : '',
      name: isResourceRequest ? pick(random, names) : '',
      path: isResourceRequest ? `/api/v1/${resource}` : pick(random, paths),
    },
  };
}

/**
 * The decision by definition: some binding in scope has a subject that is the user, and its role has a rule that
 * matches the request. It shares no code with the authorizer.
 */
export function modelAllows({ roles, bindings }: RoleGraph, asked: AccessAttributes, user: UserInfo): boolean {
  return bindings.some(({ metadata, roleRef, subjects = [] }) => {
    const home = metadata?.namespace ?? '';
    if (home !== '' && home !== asked.namespace) return false;
    const isSubject = subjects.some(({ kind, name, namespace }) => {
      switch (kind) {
        case 'User':
          return name === user.name;
        case 'Group':
          return user.groups.indexOf(name) >= 0;
        default:
          return user.name === ['system', 'serviceaccount', namespace || home, name].join(':');
      }
    });
    if (!isSubject) return false;
    const roleHome = roleRef.kind === 'Role' ? home : '';
    const role = roles.find((one) => one.namespace === roleHome && one.name === roleRef.name);
    return (role?.rules ?? []).some((rule) => modelMatches(rule, asked));
  });
}

function modelMatches(rule: PolicyRule, asked: AccessAttributes): boolean {
  const list = (values: readonly string[] | undefined, value: string) =>
    (values ?? []).filter((each) => each === '*' || each === value).length > 0;
  if (!list(rule.verbs, asked.verb)) return false;
  if (!asked.isResourceRequest) {
    for (const url of rule.nonResourceURLs ?? []) {
      if (url === asked.path) return true;
      if (url.slice(-1) === '*' && asked.path.slice(0, url.length - 1) === url.slice(0, -1)) return true;
    }
    return false;
  }
  if (!list(rule.apiGroups, asked.apiGroup)) return false;
  const forms = ['*', asked.resource];
  if (asked.subresource !== '') {
    forms.pop();
    forms.push(`${asked.resource}/${asked.subresource}`, `*/${asked.subresource}`);
  }
  if (!(rule.resources ?? []).some((each) => forms.includes(each))) return false;
  const restricted = rule.resourceNames ?? [];
  return restricted.length === 0 || restricted.includes(asked.name);
}
