import { always, embedded, filled, type Infer, type KubeObject, objectMetaSchema, type Schema, s } from '@keelson/core';
import { PodSpecSchema } from './pod-spec.ts';
import { PodStatusSchema } from './pod-status.ts';
import { ObjectReferenceSchema } from './references.ts';

const pod = s.message(
  'k8s.io.api.core.v1.Pod',
  'Containers that run together on one node and share network and volumes.',
  {
    spec: embedded(2, PodSpecSchema, 'Intended state.'),
    status: filled(3, PodStatusSchema, 'Observed state, as the node agent reports it.'),
  },
);
export interface Pod extends KubeObject, Infer<typeof pod> {}
export const PodSchema: Schema<Pod> = pod;

const podTemplateSpec = s.message(
  'k8s.io.api.core.v1.PodTemplateSpec',
  'Template of the pods that a controller creates.',
  {
    metadata: filled(1, objectMetaSchema, 'Labels and annotations of the pods.'),
    spec: embedded(2, PodSpecSchema, 'Spec of the pods.'),
  },
);
export interface PodTemplateSpec extends Infer<typeof podTemplateSpec> {}
export const PodTemplateSpecSchema: Schema<PodTemplateSpec> = podTemplateSpec;

const podTemplate = s.message('k8s.io.api.core.v1.PodTemplate', 'A form of pods that controllers can refer to.', {
  template: embedded(2, PodTemplateSpecSchema, 'Template of the pods.'),
});
export interface PodTemplate extends KubeObject, Infer<typeof podTemplate> {}
export const PodTemplateSchema: Schema<PodTemplate> = podTemplate;

const binding = s.message('k8s.io.api.core.v1.Binding', 'Assigns a pod to a node.', {
  target: always(2, ObjectReferenceSchema, 'The node.'),
});
export interface Binding extends KubeObject, Infer<typeof binding> {}
export const BindingSchema: Schema<Binding> = binding;
