import type { KindDefinition } from '@keelson/core';
import { ClusterRole, ClusterRoleBinding, RoleBinding } from '@keelson/kinds';

const apiGroup = 'rbac.authorization.k8s.io';

/** An object to be created; in the namespace `default`, if it is namespaced. */
export interface AccessObject {
  readonly kind: KindDefinition;
  readonly object: { readonly metadata: { readonly name: string }; readonly [field: string]: unknown };
}

/** The user to whom four of the bindings apply. */
export const reader = 'reader';

/** The object that is read. */
export const readObject = { metadata: { name: 'read' }, data: { text: 'x'.repeat(1_000) } };

export function* roles(count: number): Generator<AccessObject> {
  for (let i = 0; i < count; i += 1) {
    const resources = ['pods', 'configmaps', `things${i}`];
    const rules = [{ apiGroups: [''], resources, verbs: ['get', 'list', 'watch'] }];
    yield { kind: ClusterRole, object: { metadata: { name: `role-${i}` }, rules } };
  }
}

/** Every second binding is of the namespace `default`. */
export function* bindings(count: number, roleCount: number): Generator<AccessObject> {
  for (let i = 0; i < count; i += 1) {
    const isUsers = i % Math.ceil(count / 4) === 0;
    const object = {
      metadata: { name: `binding-${i}` },
      roleRef: { apiGroup, kind: 'ClusterRole', name: `role-${i % roleCount}` },
      subjects: [{ apiGroup, kind: 'User', name: isUsers ? reader : `user-${i}` }],
    };
    yield i % 2 === 0 ? { kind: RoleBinding, object } : { kind: ClusterRoleBinding, object };
  }
}
