import { always, embedded, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const ingressClassParametersReference = s.message(
  'k8s.io.api.networking.v1.IngressClassParametersReference',
  'Points at the settings of an ingress class.',
  {
    apiGroup: optional(1, s.string(), 'API group of the object; unset means the core group.', { presence: true }),
    kind: always(2, s.string(), 'Kind of the object.'),
    name: always(3, s.string(), 'Name of the object.'),
    scope: optional(4, s.string(), 'Whether the object is of the Cluster or in a Namespace; Cluster by default.', {
      presence: true,
    }),
    namespace: optional(5, s.string(), 'Namespace of the object, for the scope Namespace.', { presence: true }),
  },
);
export interface IngressClassParametersReference extends Infer<typeof ingressClassParametersReference> {}
export const IngressClassParametersReferenceSchema: Schema<IngressClassParametersReference> =
  ingressClassParametersReference;

const ingressClassSpec = s.message('k8s.io.api.networking.v1.IngressClassSpec', 'Implementation of an ingress class.', {
  controller: optional(1, s.string(), 'Name of the controller, such as example.com/ingress; it cannot be changed.'),
  parameters: optional(2, IngressClassParametersReferenceSchema, 'Object with further settings.'),
});
export interface IngressClassSpec extends Infer<typeof ingressClassSpec> {}
export const IngressClassSpecSchema: Schema<IngressClassSpec> = ingressClassSpec;

const ingressClass = s.message('k8s.io.api.networking.v1.IngressClass', 'Names an implementation of ingresses.', {
  spec: embedded(2, IngressClassSpecSchema, 'The implementation.'),
});
export interface IngressClass extends KubeObject, Infer<typeof ingressClass> {}
export const IngressClassSchema: Schema<IngressClass> = ingressClass;
