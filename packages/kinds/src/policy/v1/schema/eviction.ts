import { type Infer, type KubeObject, objectMetaSchema, optional, type Schema, s, typeMetaFields } from '@keelson/core';
import { deleteOptionsSchema } from '@keelson/core/internal';

const eviction = s.message(
  'k8s.io.api.policy.v1.Eviction',
  'Asks for a pod to be evicted from its node, with regard to disruption budgets.',
  {
    ...typeMetaFields,
    metadata: optional(1, objectMetaSchema, 'Name and namespace of the object.'),
    deleteOptions: optional(2, deleteOptionsSchema, 'How the pod is to be deleted.'),
  },
);
export interface Eviction extends KubeObject, Infer<typeof eviction> {}
export const EvictionSchema: Schema<Eviction> = eviction;
