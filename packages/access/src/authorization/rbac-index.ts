import type { UserInfo } from '@keelson/core';
import type { ClusterRoleBinding, PolicyRule, RoleBinding, Subject } from '@keelson/kinds';

/** The part of a binding that decisions depend on. */
export interface KeptBinding {
  readonly name: string;
  /** Namespace of a role binding; '' for a cluster role binding. */
  readonly namespace: string;
  readonly roleKind: string;
  readonly roleName: string;
  /** Subjects, in the order in which the binding lists them. */
  readonly subjects: readonly KeptSubject[];
}

interface KeptSubject {
  readonly id: string;
  /** The subject as the reason of a decision names it. */
  readonly text: string;
}

/** A role that a binding grants to a user. */
export interface Grant {
  /** The binding, role and subject as Kubernetes reports them in reasons. */
  readonly source: string;
  readonly rules: readonly PolicyRule[];
}

/** The roles of a user in one scope. */
export interface Grants {
  readonly grants: readonly Grant[];
  /** Roles of bindings that do not exist. */
  readonly problems: readonly string[];
}

const userId = (name: string): string => `u:${name}`;
const groupId = (name: string): string => `g:${name}`;

function keepSubject({ kind, name, namespace = '' }: Subject, bindingNamespace: string): KeptSubject[] {
  const text = (shown: string) => `${kind} ${JSON.stringify(shown)}`;
  if (kind === 'User') return [{ id: userId(name), text: text(name) }];
  if (kind === 'Group') return [{ id: groupId(name), text: text(name) }];
  const home = namespace === '' ? bindingNamespace : namespace;
  if (kind !== 'ServiceAccount' || home === '') return [];
  // Kubernetes reports the name before the namespace.
  return [{ id: userId(`system:serviceaccount:${home}:${name}`), text: text(`${name}/${home}`) }];
}

/** The part of a binding that is kept in memory. */
export function keepBinding({ metadata, roleRef, subjects }: RoleBinding | ClusterRoleBinding): KeptBinding {
  const { name = '', namespace = '' } = metadata ?? {};
  return {
    name,
    namespace,
    roleKind: roleRef.kind,
    roleName: roleRef.name,
    subjects: (subjects ?? []).flatMap((subject) => keepSubject(subject, namespace)),
  };
}

const byName = (a: KeptBinding, b: KeptBinding): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

/**
 * Roles by key (`namespace/name`, `name` for cluster roles), and bindings by scope and subject. Every change increments
 * `generation`.
 */
export class RbacIndex {
  readonly #roles = new Map<string, readonly PolicyRule[]>();
  /** Bindings by namespace ('' for cluster role bindings) and subject. */
  readonly #bindings = new Map<string, Map<string, Set<KeptBinding>>>();
  #generation = 0;

  get generation(): number {
    return this.#generation;
  }

  putRole(key: string, rules: readonly PolicyRule[]): void {
    this.#roles.set(key, rules);
    this.#generation += 1;
  }

  removeRole(key: string): void {
    this.#roles.delete(key);
    this.#generation += 1;
  }

  addBinding(binding: KeptBinding): void {
    this.#generation += 1;
    if (binding.subjects.length === 0) return;
    const scope = this.#bindings.get(binding.namespace) ?? new Map<string, Set<KeptBinding>>();
    this.#bindings.set(binding.namespace, scope);
    for (const { id } of binding.subjects) {
      const bound = scope.get(id);
      if (bound === undefined) scope.set(id, new Set([binding]));
      else bound.add(binding);
    }
  }

  /** @param binding the same object that was added */
  removeBinding(binding: KeptBinding): void {
    this.#generation += 1;
    const scope = this.#bindings.get(binding.namespace);
    for (const { id } of binding.subjects) {
      const bound = scope?.get(id);
      bound?.delete(binding);
      if (bound?.size === 0) scope?.delete(id);
    }
    if (scope?.size === 0) this.#bindings.delete(binding.namespace);
  }

  /**
   * The roles that the bindings of one scope grant to a user, in the order of the bindings' names.
   *
   * @param namespace '' for cluster role bindings
   */
  grantsOf(user: UserInfo, namespace: string): Grants {
    const scope = this.#bindings.get(namespace);
    if (scope === undefined) return { grants: [], problems: [] };
    const ids = new Set([userId(user.name), ...user.groups.map(groupId)]);
    const bound = new Set<KeptBinding>();
    for (const id of ids) for (const binding of scope.get(id) ?? []) bound.add(binding);
    const grants: Grant[] = [];
    const problems: string[] = [];
    for (const binding of [...bound].sort(byName)) {
      const { name, roleKind, roleName, subjects } = binding;
      const rules = this.#roles.get(roleKind === 'Role' ? `${namespace}/${roleName}` : roleName);
      if (rules === undefined) {
        problems.push(`${roleKind.toLowerCase()}.rbac.authorization.k8s.io ${JSON.stringify(roleName)} not found`);
        continue;
      }
      const subject = subjects.find(({ id }) => ids.has(id))?.text ?? '';
      const what =
        namespace === ''
          ? `ClusterRoleBinding ${JSON.stringify(name)}`
          : `RoleBinding ${JSON.stringify(`${name}/${namespace}`)}`;
      grants.push({ source: `${what} of ${roleKind} ${JSON.stringify(roleName)} to ${subject}`, rules });
    }
    return { grants, problems };
  }
}
