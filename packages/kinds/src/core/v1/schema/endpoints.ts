import { always, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { ObjectReferenceSchema } from './references.ts';

const endpointAddress = s.message(
  'k8s.io.api.core.v1.EndpointAddress',
  'Address of one endpoint.',
  {
    ip: always(1, s.string(), 'IPv4 or IPv6 address; no loopback, link-local or multicast address.'),
    hostname: optional(3, s.string(), 'Host name of the endpoint.'),
    nodeName: optional(4, s.string(), 'Node on which the endpoint lives.', { presence: true }),
    targetRef: optional(2, ObjectReferenceSchema, 'Object behind the address, usually a pod.'),
  },
  { mapType: 'atomic' },
);
export interface EndpointAddress extends Infer<typeof endpointAddress> {}
export const EndpointAddressSchema: Schema<EndpointAddress> = endpointAddress;

const endpointPort = s.message(
  'k8s.io.api.core.v1.EndpointPort',
  'One port of the endpoints.',
  {
    name: optional(1, s.string(), 'Name of the port, the same as in the service.'),
    port: always(2, s.int32(), 'Number of the port.'),
    protocol: optional(3, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP.', { default: 'TCP' }),
    appProtocol: optional(4, s.string(), 'Protocol spoken on top, a hint.', { presence: true }),
  },
  { mapType: 'atomic' },
);
export interface EndpointPort extends Infer<typeof endpointPort> {}
export const EndpointPortSchema: Schema<EndpointPort> = endpointPort;

const endpointSubset = s.message(
  'k8s.io.api.core.v1.EndpointSubset',
  'Addresses that share the same ports; the endpoints are all pairs of the two.',
  {
    addresses: optional(1, s.list(EndpointAddressSchema, { listType: 'atomic' }), 'Addresses that take traffic.'),
    notReadyAddresses: optional(
      2,
      s.list(EndpointAddressSchema, { listType: 'atomic' }),
      'Addresses that are not ready to take traffic.',
    ),
    ports: optional(3, s.list(EndpointPortSchema, { listType: 'atomic' }), 'Ports at these addresses.'),
  },
);
export interface EndpointSubset extends Infer<typeof endpointSubset> {}
export const EndpointSubsetSchema: Schema<EndpointSubset> = endpointSubset;

const endpoints = s.message('k8s.io.api.core.v1.Endpoints', 'The addresses behind a service of the same name.', {
  subsets: optional(2, s.list(EndpointSubsetSchema, { listType: 'atomic' }), 'All endpoints, grouped by common ports.'),
});
export interface Endpoints extends KubeObject, Infer<typeof endpoints> {}
export const EndpointsSchema: Schema<Endpoints> = endpoints;
