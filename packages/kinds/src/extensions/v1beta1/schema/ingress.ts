import { always, embedded, filled, type Infer, inline, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { TypedLocalObjectReferenceSchema } from '../../../core/v1/schema/references.ts';

const ingressBackend = s.message('k8s.io.api.extensions.v1beta1.IngressBackend', 'Where requests are sent.', {
  serviceName: optional(1, s.string(), 'Service in the same namespace.'),
  servicePort: optional(2, s.intOrString(), "Number or name of the service's port."),
  resource: optional(3, TypedLocalObjectReferenceSchema, 'Another object as backend; not together with a service.'),
});
export interface IngressBackend extends Infer<typeof ingressBackend> {}
export const IngressBackendSchema: Schema<IngressBackend> = ingressBackend;

const httpIngressPath = s.message('k8s.io.api.extensions.v1beta1.HTTPIngressPath', 'One path and its backend.', {
  path: optional(1, s.string(), 'Path of the request; must begin with `/`. Empty matches every path.'),
  pathType: optional(3, s.string(), 'How the path is compared: Exact, Prefix or ImplementationSpecific.', {
    presence: true,
  }),
  backend: always(2, IngressBackendSchema, 'Where such requests are sent.'),
});
export interface HTTPIngressPath extends Infer<typeof httpIngressPath> {}
export const HTTPIngressPathSchema: Schema<HTTPIngressPath> = httpIngressPath;

const httpIngressRuleValue = s.message(
  'k8s.io.api.extensions.v1beta1.HTTPIngressRuleValue',
  'Rules for HTTP requests.',
  {
    paths: always(1, s.list(HTTPIngressPathSchema, { listType: 'atomic' }), 'Paths and their backends.'),
  },
);
export interface HTTPIngressRuleValue extends Infer<typeof httpIngressRuleValue> {}
export const HTTPIngressRuleValueSchema: Schema<HTTPIngressRuleValue> = httpIngressRuleValue;

const ingressRuleValue = s.message('k8s.io.api.extensions.v1beta1.IngressRuleValue', 'Rules by protocol.', {
  http: optional(
    1,
    HTTPIngressRuleValueSchema,
    'Rules for HTTP requests; unset sends everything to the default backend.',
  ),
});
export interface IngressRuleValue extends Infer<typeof ingressRuleValue> {}
export const IngressRuleValueSchema: Schema<IngressRuleValue> = ingressRuleValue;

const ingressRule = s.message('k8s.io.api.extensions.v1beta1.IngressRule', 'Rules for one host.', {
  host: optional(
    1,
    s.string(),
    'DNS name of the host, without port, optionally with a leading `*.`; empty matches every host.',
  ),
  ingressRuleValue: inline(2, IngressRuleValueSchema),
});
export interface IngressRule extends Infer<typeof ingressRule> {}
export const IngressRuleSchema: Schema<IngressRule> = ingressRule;

const ingressTLS = s.message('k8s.io.api.extensions.v1beta1.IngressTLS', 'TLS for some hosts.', {
  hosts: optional(
    1,
    s.list(s.string(), { listType: 'atomic' }),
    'Names in the certificate; all hosts of the ingress by default.',
  ),
  secretName: optional(2, s.string(), 'Secret with certificate and key.'),
});
export interface IngressTLS extends Infer<typeof ingressTLS> {}
export const IngressTLSSchema: Schema<IngressTLS> = ingressTLS;

const ingressSpec = s.message('k8s.io.api.extensions.v1beta1.IngressSpec', 'Intended state of an ingress.', {
  ingressClassName: optional(4, s.string(), 'Class, and so the implementation, of the ingress.', { presence: true }),
  backend: optional(
    1,
    IngressBackendSchema,
    'Default backend, for requests that match no rule. It or rules are required.',
  ),
  tls: optional(2, s.list(IngressTLSSchema, { listType: 'atomic' }), 'TLS settings.'),
  rules: optional(3, s.list(IngressRuleSchema, { listType: 'atomic' }), 'Rules by host.'),
});
export interface IngressSpec extends Infer<typeof ingressSpec> {}
export const IngressSpecSchema: Schema<IngressSpec> = ingressSpec;

const ingressPortStatus = s.message(
  'k8s.io.api.extensions.v1beta1.IngressPortStatus',
  'State of one port of a load balancer.',
  {
    port: always(1, s.int32(), 'Number of the port.'),
    protocol: always(2, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP.'),
    error: optional(3, s.string(), 'Why the port does not work, as a CamelCase word.', { presence: true }),
  },
);
export interface IngressPortStatus extends Infer<typeof ingressPortStatus> {}
export const IngressPortStatusSchema: Schema<IngressPortStatus> = ingressPortStatus;

const ingressLoadBalancerIngress = s.message(
  'k8s.io.api.extensions.v1beta1.IngressLoadBalancerIngress',
  'One address of the load balancer of an ingress.',
  {
    ip: optional(1, s.string(), 'Address, for balancers that are reached by IP.'),
    hostname: optional(2, s.string(), 'DNS name, for balancers that are reached by name.'),
    ports: optional(4, s.list(IngressPortStatusSchema, { listType: 'atomic' }), 'State of the single ports.'),
  },
);
export interface IngressLoadBalancerIngress extends Infer<typeof ingressLoadBalancerIngress> {}
export const IngressLoadBalancerIngressSchema: Schema<IngressLoadBalancerIngress> = ingressLoadBalancerIngress;

const ingressLoadBalancerStatus = s.message(
  'k8s.io.api.extensions.v1beta1.IngressLoadBalancerStatus',
  'State of the load balancer.',
  {
    ingress: optional(
      1,
      s.list(IngressLoadBalancerIngressSchema, { listType: 'atomic' }),
      'Addresses of the load balancer.',
    ),
  },
);
export interface IngressLoadBalancerStatus extends Infer<typeof ingressLoadBalancerStatus> {}
export const IngressLoadBalancerStatusSchema: Schema<IngressLoadBalancerStatus> = ingressLoadBalancerStatus;

const ingressStatus = s.message('k8s.io.api.extensions.v1beta1.IngressStatus', 'Observed state of an ingress.', {
  loadBalancer: filled(1, IngressLoadBalancerStatusSchema, 'State of the load balancer.'),
});
export interface IngressStatus extends Infer<typeof ingressStatus> {}
export const IngressStatusSchema: Schema<IngressStatus> = ingressStatus;

const ingress = s.message(
  'k8s.io.api.extensions.v1beta1.Ingress',
  'Leads outside HTTP requests to services, by host and path.',
  {
    spec: embedded(2, IngressSpecSchema, 'Intended state.'),
    status: filled(3, IngressStatusSchema, 'Observed state.'),
  },
);
export interface Ingress extends KubeObject, Infer<typeof ingress> {}
export const IngressSchema: Schema<Ingress> = ingress;
