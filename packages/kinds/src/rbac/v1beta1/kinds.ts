import { defineKind, type KindDefinition, type KubeObject, type StorageConversion } from '@keelson/core';
import * as bindings from '../v1/bindings.ts';
import * as roles from '../v1/roles.ts';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../v1/schema/index.ts';
import { ClusterRoleBindingSchema, ClusterRoleSchema, RoleBindingSchema, RoleSchema } from './schema.ts';

const gv = { group: 'rbac.authorization.k8s.io', version: 'v1beta1' } as const;
const apiVersion = 'rbac.authorization.k8s.io/v1beta1';

/** Both versions have the same fields; the objects are stored as v1. */
function storedAsV1<T extends KubeObject>(kind: KindDefinition<T>): StorageConversion<T> {
  return {
    kind,
    toStorage: (object) => ({ ...object, apiVersion: kind.apiVersion }),
    fromStorage: (stored) => ({ ...(stored as T), apiVersion }),
    isRelabel: () => true,
  };
}

const deprecated = (kind: string) => ({
  since: '1.17',
  removed: '1.22',
  replacement: `rbac.authorization.k8s.io/v1 ${kind}`,
});

/** The older version of Role, for clients of Kubernetes 1.6 to 1.21. */
export const RbacV1beta1Role: KindDefinition<Role> = defineKind({
  ...gv,
  kind: 'Role',
  deprecated: deprecated('Role'),
  schema: RoleSchema,
  storage: storedAsV1(roles.Role),
  strategy: roles.roleStrategy,
});
export type RbacV1beta1Role = Role;

/** The older version of ClusterRole. */
export const RbacV1beta1ClusterRole: KindDefinition<ClusterRole> = defineKind({
  ...gv,
  kind: 'ClusterRole',
  deprecated: deprecated('ClusterRole'),
  scope: 'Cluster',
  schema: ClusterRoleSchema,
  storage: storedAsV1(roles.ClusterRole),
  strategy: roles.clusterRoleStrategy,
});
export type RbacV1beta1ClusterRole = ClusterRole;

/** The older version of RoleBinding. */
export const RbacV1beta1RoleBinding: KindDefinition<RoleBinding> = defineKind({
  ...gv,
  kind: 'RoleBinding',
  deprecated: deprecated('RoleBinding'),
  schema: RoleBindingSchema,
  storage: storedAsV1(bindings.RoleBinding),
  strategy: bindings.roleBindingStrategy,
  columns: bindings.bindingColumns,
});
export type RbacV1beta1RoleBinding = RoleBinding;

/** The older version of ClusterRoleBinding. */
export const RbacV1beta1ClusterRoleBinding: KindDefinition<ClusterRoleBinding> = defineKind({
  ...gv,
  kind: 'ClusterRoleBinding',
  deprecated: deprecated('ClusterRoleBinding'),
  scope: 'Cluster',
  schema: ClusterRoleBindingSchema,
  storage: storedAsV1(bindings.ClusterRoleBinding),
  strategy: bindings.clusterRoleBindingStrategy,
  columns: bindings.bindingColumns,
});
export type RbacV1beta1ClusterRoleBinding = ClusterRoleBinding;
