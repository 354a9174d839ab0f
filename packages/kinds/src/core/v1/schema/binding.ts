import { always, type Infer, type KubeObject, objectMetaSchema, optional, type Schema, s, typeMetaFields } from '@keelson/core';
import { ObjectReferenceSchema } from './references.ts';

const binding = s.message('k8s.io.api.core.v1.Binding', 'Assigns a pod to a node.', {
  ...typeMetaFields,
  metadata: optional(1, objectMetaSchema, 'Name and namespace of the object that is meant.'),
  target: always(2, ObjectReferenceSchema, 'The node.'),
});
export interface Binding extends KubeObject, Infer<typeof binding> {}
export const BindingSchema: Schema<Binding> = binding;
