import { always, type Infer, type KubeObject, type Schema, s } from '@keelson/core';
import { ObjectReferenceSchema } from './references.ts';

const binding = s.message('k8s.io.api.core.v1.Binding', 'Assigns a pod to a node.', {
  target: always(2, ObjectReferenceSchema, 'The node.'),
});
export interface Binding extends KubeObject, Infer<typeof binding> {}
export const BindingSchema: Schema<Binding> = binding;
