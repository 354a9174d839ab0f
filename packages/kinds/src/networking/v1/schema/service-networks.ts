import {
  conditionSchema,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';

const parentReference = s.message('k8s.io.api.networking.v1.ParentReference', 'Names the object that has an address.', {
  group: optional(1, s.string(), 'API group of the object; empty for the core group.'),
  resource: required(2, s.string(), 'Resource of the object, such as services.'),
  namespace: optional(3, s.string(), 'Namespace of the object.'),
  name: required(4, s.string(), 'Name of the object.'),
});
export interface ParentReference extends Infer<typeof parentReference> {}
export const ParentReferenceSchema: Schema<ParentReference> = parentReference;

const ipAddressSpec = s.message('k8s.io.api.networking.v1.IPAddressSpec', 'What an address is used for.', {
  parentRef: required(1, ParentReferenceSchema, 'The object that has the address; it cannot be changed.'),
});
export interface IPAddressSpec extends Infer<typeof ipAddressSpec> {}
export const IPAddressSpecSchema: Schema<IPAddressSpec> = ipAddressSpec;

const ipAddress = s.message(
  'k8s.io.api.networking.v1.IPAddress',
  'An address that an object has. Its name is the address in canonical form, so that no two objects have the same one.',
  { spec: embedded(2, IPAddressSpecSchema, 'Who has the address.') },
);
export interface IPAddress extends KubeObject, Infer<typeof ipAddress> {}
export const IPAddressSchema: Schema<IPAddress> = ipAddress;

const serviceCidrSpec = s.message('k8s.io.api.networking.v1.ServiceCIDRSpec', 'Networks for cluster IPs.', {
  cidrs: optional(
    1,
    s.list(s.string(), { listType: 'atomic' }),
    'One network, or one of each IP family, in CIDR notation; not changeable.',
  ),
});
export interface ServiceCIDRSpec extends Infer<typeof serviceCidrSpec> {}
export const ServiceCIDRSpecSchema: Schema<ServiceCIDRSpec> = serviceCidrSpec;

const serviceCidrStatus = s.message('k8s.io.api.networking.v1.ServiceCIDRStatus', 'Whether networks are in use.', {
  conditions: optional(1, s.listByKey(conditionSchema, 'type'), 'Ready: cluster IPs are allocated from the networks.'),
});
export interface ServiceCIDRStatus extends Infer<typeof serviceCidrStatus> {}
export const ServiceCIDRStatusSchema: Schema<ServiceCIDRStatus> = serviceCidrStatus;

const serviceCidr = s.message(
  'k8s.io.api.networking.v1.ServiceCIDR',
  'Networks from which cluster IPs of services are allocated.',
  {
    spec: embedded(2, ServiceCIDRSpecSchema, 'The networks.'),
    status: filled(3, ServiceCIDRStatusSchema, 'Whether they are in use.'),
  },
);
export interface ServiceCIDR extends KubeObject, Infer<typeof serviceCidr> {}
export const ServiceCIDRSchema: Schema<ServiceCIDR> = serviceCidr;
