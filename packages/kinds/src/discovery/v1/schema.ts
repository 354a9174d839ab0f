import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { ObjectReferenceSchema } from '../../core/v1/schema/references.ts';

const endpointConditions = s.message('k8s.io.api.discovery.v1.EndpointConditions', 'State of an endpoint.', {
  ready: optional(1, s.bool(), 'The endpoint takes traffic; unset means true. Never true while it terminates.', {
    presence: true,
  }),
  serving: optional(
    2,
    s.bool(),
    'The endpoint could take traffic, also while it terminates; unset means the same as ready.',
    { presence: true },
  ),
  terminating: optional(3, s.bool(), 'The endpoint is being shut down; unset means false.', { presence: true }),
});
export interface EndpointConditions extends Infer<typeof endpointConditions> {}
export const EndpointConditionsSchema: Schema<EndpointConditions> = endpointConditions;

const forZone = s.message('k8s.io.api.discovery.v1.ForZone', 'A zone whose clients use an endpoint.', {
  name: always(1, s.string(), 'Name of the zone.'),
});
export interface ForZone extends Infer<typeof forZone> {}
export const ForZoneSchema: Schema<ForZone> = forZone;

const forNode = s.message('k8s.io.api.discovery.v1.ForNode', 'A node whose clients use an endpoint.', {
  name: always(1, s.string(), 'Name of the node.'),
});
export interface ForNode extends Infer<typeof forNode> {}
export const ForNodeSchema: Schema<ForNode> = forNode;

const endpointHints = s.message('k8s.io.api.discovery.v1.EndpointHints', 'Which clients should use an endpoint.', {
  forZones: optional(1, s.list(ForZoneSchema, { listType: 'atomic' }), 'Zones whose clients should use it, at most 8.'),
  forNodes: optional(2, s.list(ForNodeSchema, { listType: 'atomic' }), 'Nodes whose clients should use it, at most 8.'),
});
export interface EndpointHints extends Infer<typeof endpointHints> {}
export const EndpointHintsSchema: Schema<EndpointHints> = endpointHints;

const endpoint = s.message('k8s.io.api.discovery.v1.Endpoint', 'One endpoint of a service, usually a pod.', {
  addresses: always(
    1,
    s.list(s.string(), { listType: 'set' }),
    'Its addresses, 1 to 100, of the type of the slice; clients use the first.',
  ),
  conditions: filled(2, EndpointConditionsSchema, 'Its state.'),
  hostname: optional(3, s.string(), 'Its host name, a DNS label; several endpoints may have the same.', {
    presence: true,
  }),
  targetRef: optional(4, ObjectReferenceSchema, 'The object behind the endpoint.'),
  deprecatedTopology: optional(5, s.map(s.string()), 'Topology of older versions; only read.'),
  nodeName: optional(6, s.string(), 'Node on which it runs.', { presence: true }),
  zone: optional(7, s.string(), 'Zone in which it runs.', { presence: true }),
  hints: optional(8, EndpointHintsSchema, 'Which clients should use it.'),
});
export interface Endpoint extends Infer<typeof endpoint> {}
export const EndpointSchema: Schema<Endpoint> = endpoint;

const endpointPort = s.message(
  'k8s.io.api.discovery.v1.EndpointPort',
  'One port of all endpoints of a slice.',
  {
    name: optional(1, s.string(), 'Name of the port, unique in the slice; empty by default.', { presence: true }),
    protocol: optional(2, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP; TCP by default.', {
      presence: true,
    }),
    port: optional(3, s.int32(), 'Number of the port; unset means all ports.', { presence: true }),
    appProtocol: optional(4, s.string(), 'Protocol spoken at the port, a hint.', { presence: true }),
  },
  { mapType: 'atomic' },
);
export interface EndpointPort extends Infer<typeof endpointPort> {}
export const EndpointPortSchema: Schema<EndpointPort> = endpointPort;

const endpointSlice = s.message('k8s.io.api.discovery.v1.EndpointSlice', 'A part of the endpoints of a service.', {
  addressType: always(
    4,
    s.string({ values: ['FQDN', 'IPv4', 'IPv6'] }),
    'Type of all addresses: IPv4, IPv6 or FQDN. It cannot be changed.',
  ),
  endpoints: always(2, s.list(EndpointSchema, { listType: 'atomic' }), 'The endpoints, at most 1000.'),
  ports: filled(
    3,
    s.list(EndpointPortSchema, { listType: 'atomic' }),
    'Ports of every endpoint, at most 20000; none means no defined ports.',
  ),
});
export interface EndpointSlice extends KubeObject, Infer<typeof endpointSlice> {}
export const EndpointSliceSchema: Schema<EndpointSlice> = endpointSlice;
