import {
  always,
  embedded,
  filled,
  type Infer,
  inline,
  type KubeObject,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';
import { TypedLocalObjectReferenceSchema } from '../../../core/v1/schema/references.ts';
import * as extensions from '../../../extensions/v1beta1/schema/index.ts';
import { versionTwin } from '../../../versions/version-twin.ts';

const twin = versionTwin('k8s.io.api.extensions.v1beta1.', 'k8s.io.api.networking.v1.');

const serviceBackendPort = s.message(
  'k8s.io.api.networking.v1.ServiceBackendPort',
  'A port of a service, by name or by number.',
  {
    name: optional(1, s.string(), 'Name of the port; not together with a number.'),
    number: optional(2, s.int32(), 'Number of the port; not together with a name.'),
  },
  { mapType: 'atomic' },
);
export interface ServiceBackendPort extends Infer<typeof serviceBackendPort> {}
export const ServiceBackendPortSchema: Schema<ServiceBackendPort> = serviceBackendPort;

const ingressServiceBackend = s.message('k8s.io.api.networking.v1.IngressServiceBackend', 'A service as backend.', {
  name: always(1, s.string(), 'Service in the same namespace.'),
  port: filled(2, ServiceBackendPortSchema, 'Port of the service.'),
});
export interface IngressServiceBackend extends Infer<typeof ingressServiceBackend> {}
export const IngressServiceBackendSchema: Schema<IngressServiceBackend> = ingressServiceBackend;

const ingressBackend = s.message('k8s.io.api.networking.v1.IngressBackend', 'Where requests are sent.', {
  service: optional(4, IngressServiceBackendSchema, 'A service; not together with another object.'),
  resource: optional(3, TypedLocalObjectReferenceSchema, 'Another object as backend; not together with a service.'),
});
export interface IngressBackend extends Infer<typeof ingressBackend> {}
export const IngressBackendSchema: Schema<IngressBackend> = ingressBackend;

const httpIngressPath = s.message('k8s.io.api.networking.v1.HTTPIngressPath', 'One path and its backend.', {
  path: optional(1, s.string(), 'Path of the request; must begin with `/`. Empty matches every path.'),
  pathType: required(
    3,
    s.string({ values: ['Exact', 'ImplementationSpecific', 'Prefix'] }),
    'How the path is compared: Exact, Prefix or ImplementationSpecific.',
    {
      presence: true,
    },
  ),
  backend: always(2, IngressBackendSchema, 'Where such requests are sent.'),
});
export interface HTTPIngressPath extends Infer<typeof httpIngressPath> {}
export const HTTPIngressPathSchema: Schema<HTTPIngressPath> = httpIngressPath;

const httpIngressRuleValue = s.message('k8s.io.api.networking.v1.HTTPIngressRuleValue', 'Rules for HTTP requests.', {
  paths: always(1, s.list(HTTPIngressPathSchema, { listType: 'atomic' }), 'Paths and their backends.'),
});
export interface HTTPIngressRuleValue extends Infer<typeof httpIngressRuleValue> {}
export const HTTPIngressRuleValueSchema: Schema<HTTPIngressRuleValue> = httpIngressRuleValue;

const ingressRuleValue = s.message('k8s.io.api.networking.v1.IngressRuleValue', 'Rules by protocol.', {
  http: optional(
    1,
    HTTPIngressRuleValueSchema,
    'Rules for HTTP requests; unset sends everything to the default backend.',
  ),
});
export interface IngressRuleValue extends Infer<typeof ingressRuleValue> {}
export const IngressRuleValueSchema: Schema<IngressRuleValue> = ingressRuleValue;

const ingressRule = s.message('k8s.io.api.networking.v1.IngressRule', 'Rules for one host.', {
  host: optional(
    1,
    s.string(),
    'DNS name of the host, without port, optionally with a leading `*.`; empty matches every host.',
  ),
  ingressRuleValue: inline(2, IngressRuleValueSchema),
});
export interface IngressRule extends Infer<typeof ingressRule> {}
export const IngressRuleSchema: Schema<IngressRule> = ingressRule;

export type IngressTLS = extensions.IngressTLS;
export const IngressTLSSchema: Schema<IngressTLS> = twin(extensions.IngressTLSSchema);

const ingressSpec = s.message('k8s.io.api.networking.v1.IngressSpec', 'Intended state of an ingress.', {
  ingressClassName: optional(4, s.string(), 'Class, and so the implementation, of the ingress.', { presence: true }),
  defaultBackend: optional(
    1,
    IngressBackendSchema,
    'Default backend, for requests that match no rule. It or rules are required.',
  ),
  tls: optional(2, s.list(IngressTLSSchema, { listType: 'atomic' }), 'TLS settings.'),
  rules: optional(3, s.list(IngressRuleSchema, { listType: 'atomic' }), 'Rules by host.'),
});
export interface IngressSpec extends Infer<typeof ingressSpec> {}
export const IngressSpecSchema: Schema<IngressSpec> = ingressSpec;

export type IngressPortStatus = extensions.IngressPortStatus;
export const IngressPortStatusSchema: Schema<IngressPortStatus> = twin(extensions.IngressPortStatusSchema);

export type IngressLoadBalancerIngress = extensions.IngressLoadBalancerIngress;
export const IngressLoadBalancerIngressSchema: Schema<IngressLoadBalancerIngress> = twin(
  extensions.IngressLoadBalancerIngressSchema,
);

export type IngressLoadBalancerStatus = extensions.IngressLoadBalancerStatus;
export const IngressLoadBalancerStatusSchema: Schema<IngressLoadBalancerStatus> = twin(
  extensions.IngressLoadBalancerStatusSchema,
);

export type IngressStatus = extensions.IngressStatus;
export const IngressStatusSchema: Schema<IngressStatus> = twin(extensions.IngressStatusSchema);

const ingress = s.message(
  'k8s.io.api.networking.v1.Ingress',
  'Leads outside HTTP requests to services, by host and path.',
  {
    spec: embedded(2, IngressSpecSchema, 'Intended state.'),
    status: filled(3, IngressStatusSchema, 'Observed state.'),
  },
);
export interface Ingress extends KubeObject, Infer<typeof ingress> {}
export const IngressSchema: Schema<Ingress> = ingress;
