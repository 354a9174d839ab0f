import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const roleRef = s.message(
  'k8s.io.api.rbac.v1.RoleRef',
  'The role that a binding grants.',
  {
    apiGroup: filled(1, s.string(), 'Group of the role; default rbac.authorization.k8s.io.'),
    kind: always(2, s.string(), '`Role` or `ClusterRole`.'),
    name: always(3, s.string(), 'Name of the role.'),
  },
  { mapType: 'atomic' },
);
export interface RoleRef extends Infer<typeof roleRef> {}
export const RoleRefSchema: Schema<RoleRef> = roleRef;

const subject = s.message(
  'k8s.io.api.rbac.v1.Subject',
  'A user, a group or a service account that receives permissions.',
  {
    kind: always(1, s.string(), '`User`, `Group` or `ServiceAccount`.'),
    apiGroup: optional(
      2,
      s.string(),
      'Group of the kind; default rbac.authorization.k8s.io for users and groups, empty for service accounts.',
    ),
    name: always(3, s.string(), 'Name of the subject.'),
    namespace: optional(4, s.string(), 'Namespace of a service account.'),
  },
  { mapType: 'atomic' },
);
export interface Subject extends Infer<typeof subject> {}
export const SubjectSchema: Schema<Subject> = subject;

const subjects = s.list(SubjectSchema, { listType: 'atomic' });

const roleBinding = s.message(
  'k8s.io.api.rbac.v1.RoleBinding',
  'Grants the permissions of a role to subjects within one namespace.',
  {
    subjects: optional(2, subjects, 'Who receives the permissions.'),
    roleRef: always(3, RoleRefSchema, 'A role of the namespace or a cluster role; cannot be changed.'),
  },
);
export interface RoleBinding extends KubeObject, Infer<typeof roleBinding> {}
export const RoleBindingSchema: Schema<RoleBinding> = roleBinding;

const clusterRoleBinding = s.message(
  'k8s.io.api.rbac.v1.ClusterRoleBinding',
  'Grants the permissions of a cluster role to subjects everywhere.',
  {
    subjects: optional(2, subjects, 'Who receives the permissions.'),
    roleRef: always(3, RoleRefSchema, 'A cluster role; cannot be changed.'),
  },
);
export interface ClusterRoleBinding extends KubeObject, Infer<typeof clusterRoleBinding> {}
export const ClusterRoleBindingSchema: Schema<ClusterRoleBinding> = clusterRoleBinding;
