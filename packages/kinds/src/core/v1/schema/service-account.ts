import { type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { LocalObjectReferenceSchema, ObjectReferenceSchema } from './references.ts';

const serviceAccount = s.message('k8s.io.api.core.v1.ServiceAccount', 'An identity for the processes in pods.', {
  secrets: optional(2, s.listByKey(ObjectReferenceSchema, 'name'), 'Secrets that pods of this account may use.'),
  imagePullSecrets: optional(
    3,
    s.list(LocalObjectReferenceSchema, { listType: 'atomic' }),
    'Secrets for pulling images, given to pods of this account.',
  ),
  automountServiceAccountToken: optional(4, s.bool(), 'False disables the token in pods that do not request it.', {
    presence: true,
  }),
});
export interface ServiceAccount extends KubeObject, Infer<typeof serviceAccount> {}
export const ServiceAccountSchema: Schema<ServiceAccount> = serviceAccount;
