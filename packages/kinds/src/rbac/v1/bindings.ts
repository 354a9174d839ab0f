import {
  type Column,
  defineKind,
  type FieldError,
  fieldError,
  type KindDefinition,
  pathSegmentErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn, wide } from '../../columns/columns.ts';
import { checkName, checkText, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import {
  ClusterRoleBindingSchema,
  type ClusterRoleBinding as ClusterRoleBindingType,
  RoleBindingSchema,
  type RoleBinding as RoleBindingType,
  type Subject,
} from './schema/index.ts';

const group = 'rbac.authorization.k8s.io';
const gv = { group, version: 'v1' } as const;

type Binding = ClusterRoleBindingType | RoleBindingType;

/** Strategy of both kinds of bindings, for all API versions. */
const bindingStrategy = (roleKinds: readonly string[], namespaced: boolean) => ({
  nameRule: 'pathSegment' as const,
  allowCreateOnUpdate: true,
  default(binding: Binding): void {
    binding.roleRef.apiGroup ||= group;
    for (const subject of binding.subjects ?? []) {
      if (subject.kind === 'User' || subject.kind === 'Group') subject.apiGroup ||= group;
    }
  },
  validate({ roleRef, subjects = [] }: Binding): FieldError[] {
    const errors = newErrors();
    if (roleRef.apiGroup !== group)
      errors.push(fieldError.notSupported('roleRef.apiGroup', roleRef.apiGroup ?? '', [group]));
    if (!roleKinds.includes(roleRef.kind))
      errors.push(fieldError.notSupported('roleRef.kind', roleRef.kind, roleKinds));
    if (checkText(roleRef.name, 'roleRef.name', errors))
      pushInvalid(pathSegmentErrors(roleRef.name), roleRef.name, 'roleRef.name', errors);
    for (const [i, subject] of subjects.entries()) checkSubject(subject, namespaced, `subjects[${i}]`, errors);
    return errors;
  },
  validateUpdate({ roleRef }: Binding, { roleRef: old }: Binding): FieldError[] {
    const same = roleRef.apiGroup === old.apiGroup && roleRef.kind === old.kind && roleRef.name === old.name;
    return same ? [] : [fieldError.invalid('roleRef', roleRef, 'cannot change roleRef')];
  },
});

export const roleBindingStrategy = bindingStrategy(['Role', 'ClusterRole'], true);
export const clusterRoleBindingStrategy = bindingStrategy(['ClusterRole'], false);

function checkSubject(subject: Subject, namespaced: boolean, path: string, errors: Errors): void {
  const { kind, name, apiGroup = '', namespace = '' } = subject;
  checkText(name, `${path}.name`, errors);
  switch (kind) {
    case 'ServiceAccount':
      checkName(name, 'dns1123Subdomain', `${path}.name`, errors);
      if (apiGroup !== '') errors.push(fieldError.notSupported(`${path}.apiGroup`, apiGroup, ['']));
      if (!namespaced) checkText(namespace, `${path}.namespace`, errors);
      return;
    case 'User':
    case 'Group':
      if (apiGroup !== group) errors.push(fieldError.notSupported(`${path}.apiGroup`, apiGroup, [group]));
      return;
    default:
      errors.push(fieldError.notSupported(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group']));
  }
}

function namesOf({ subjects = [] }: Binding, kind: string): string {
  const named = subjects.filter((subject) => subject.kind === kind);
  return named
    .map(({ name, namespace = '' }) => (kind === 'ServiceAccount' ? `${namespace}/${name}` : name))
    .join(', ');
}

/** Columns of both kinds of bindings. */
export const bindingColumns: readonly Column<Binding>[] = [
  nameColumn(),
  column('Role', 'string', 'The role that is granted.', ({ roleRef }: Binding) =>
    roleRef === undefined ? '' : `${roleRef.kind}/${roleRef.name}`,
  ),
  ageColumn,
  wide('Users', 'string', 'Users that receive the role.', (binding: Binding) => namesOf(binding, 'User')),
  wide('Groups', 'string', 'Groups that receive the role.', (binding: Binding) => namesOf(binding, 'Group')),
  wide('ServiceAccounts', 'string', 'Service accounts that receive the role.', (binding: Binding) =>
    namesOf(binding, 'ServiceAccount'),
  ),
];

/** Grants the permissions of a role to subjects within one namespace. */
export const RoleBinding: KindDefinition<RoleBindingType> = defineKind({
  ...gv,
  kind: 'RoleBinding',
  schema: RoleBindingSchema,
  strategy: roleBindingStrategy,
  columns: bindingColumns,
});
export type RoleBinding = RoleBindingType;

/** Grants the permissions of a cluster role to subjects everywhere. */
export const ClusterRoleBinding: KindDefinition<ClusterRoleBindingType> = defineKind({
  ...gv,
  kind: 'ClusterRoleBinding',
  scope: 'Cluster',
  schema: ClusterRoleBindingSchema,
  strategy: clusterRoleBindingStrategy,
  columns: bindingColumns,
});
export type ClusterRoleBinding = ClusterRoleBindingType;
