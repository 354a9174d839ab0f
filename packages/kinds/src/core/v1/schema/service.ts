import {
  always,
  conditionSchema,
  embedded,
  filled,
  type Infer,
  type KubeObject,
  optional,
  type Schema,
  s,
} from '@keelson/core';
import { LoadBalancerStatusSchema } from './load-balancer.ts';

const clientIPConfig = s.message(
  'k8s.io.api.core.v1.ClientIPConfig',
  'Session affinity by the address of the client.',
  {
    timeoutSeconds: optional(
      1,
      s.int32(),
      'Seconds for which a client stays with its pod, 1 to 86400; 10800 by default.',
      {
        presence: true,
      },
    ),
  },
);
export interface ClientIPConfig extends Infer<typeof clientIPConfig> {}
export const ClientIPConfigSchema: Schema<ClientIPConfig> = clientIPConfig;

const sessionAffinityConfig = s.message(
  'k8s.io.api.core.v1.SessionAffinityConfig',
  'Details of the session affinity.',
  {
    clientIP: optional(1, ClientIPConfigSchema, 'Details of affinity by client address.'),
  },
);
export interface SessionAffinityConfig extends Infer<typeof sessionAffinityConfig> {}
export const SessionAffinityConfigSchema: Schema<SessionAffinityConfig> = sessionAffinityConfig;

const servicePort = s.message('k8s.io.api.core.v1.ServicePort', 'One port of a service.', {
  name: optional(1, s.string(), 'Name of the port, unique in the service; required when there are several.'),
  protocol: optional(2, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP.', { default: 'TCP' }),
  appProtocol: optional(6, s.string(), 'Protocol spoken on top, e.g. http or kubernetes.io/h2c; a hint.', {
    presence: true,
  }),
  port: always(3, s.int32(), 'Port on which the service listens, 1 to 65535.'),
  targetPort: optional(
    4,
    s.intOrString(),
    'Port of the pods: a number, or the name of a container port. The same as port by default.',
  ),
  nodePort: optional(5, s.int32(), 'Port on every node for NodePort and LoadBalancer services; allocated when unset.'),
});
export interface ServicePort extends Infer<typeof servicePort> {}
export const ServicePortSchema: Schema<ServicePort> = servicePort;

const serviceSpec = s.message('k8s.io.api.core.v1.ServiceSpec', 'Intended state of a service.', {
  ports: optional(
    1,
    s.listByKey(ServicePortSchema, 'port', { listMapKeys: ['port', 'protocol'] }),
    'Ports on which the service listens.',
  ),
  selector: optional(
    2,
    s.map(s.string(), { mapType: 'atomic' }),
    'Labels of the pods that receive the traffic; empty when the endpoints are managed externally.',
  ),
  clusterIP: optional(
    3,
    s.string(),
    'Virtual address: allocated when unset, None for a headless service. Cannot be changed later.',
  ),
  clusterIPs: optional(
    18,
    s.list(s.string(), { listType: 'atomic' }),
    'All virtual addresses, one for each IP family; the first equals clusterIP.',
  ),
  type: optional(
    4,
    s.string({ values: ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'] }),
    'How the service is reached: ClusterIP, NodePort, LoadBalancer or ExternalName.',
    {
      default: 'ClusterIP',
    },
  ),
  externalIPs: optional(
    5,
    s.list(s.string(), { listType: 'atomic' }),
    'Further addresses at which nodes take traffic for the service; routing them is up to you.',
  ),
  sessionAffinity: optional(
    7,
    s.string({ values: ['ClientIP', 'None'] }),
    'ClientIP keeps each client at one pod; None does not.',
    {
      default: 'None',
    },
  ),
  loadBalancerIP: optional(8, s.string(), 'Requested address of the load balancer; not supported by all providers.'),
  loadBalancerSourceRanges: optional(
    9,
    s.list(s.string(), { listType: 'atomic' }),
    'Client networks (CIDR) that the load balancer lets in.',
  ),
  externalName: optional(10, s.string(), 'DNS name to which an ExternalName service is an alias.'),
  externalTrafficPolicy: optional(
    11,
    s.string({ values: ['Cluster', 'Local'] }),
    "Cluster spreads outside traffic over all pods; Local keeps it on the node and keeps the client's address.",
  ),
  healthCheckNodePort: optional(
    12,
    s.int32(),
    'Node port of the health check for local pods; for externalTrafficPolicy Local.',
  ),
  publishNotReadyAddresses: optional(13, s.bool(), 'True publishes pods that are not ready as well.'),
  sessionAffinityConfig: optional(14, SessionAffinityConfigSchema, 'Details of the session affinity.'),
  ipFamilies: optional(
    19,
    s.list(s.string({ values: ['', 'IPv4', 'IPv6'] }), { listType: 'atomic' }),
    'IP families of the service, IPv4 or IPv6, in order of preference.',
  ),
  ipFamilyPolicy: optional(
    17,
    s.string({ values: ['PreferDualStack', 'RequireDualStack', 'SingleStack'] }),
    'SingleStack, PreferDualStack or RequireDualStack.',
    { presence: true },
  ),
  allocateLoadBalancerNodePorts: optional(20, s.bool(), 'False spares the node ports of a LoadBalancer service.', {
    presence: true,
  }),
  loadBalancerClass: optional(
    21,
    s.string(),
    'Implementation that provides the load balancer; cannot be changed while the type is LoadBalancer.',
    { presence: true },
  ),
  internalTrafficPolicy: optional(
    22,
    s.string({ values: ['Cluster', 'Local'] }),
    'Cluster spreads inside traffic over all pods; Local keeps it on the node.',
    {
      presence: true,
    },
  ),
  trafficDistribution: optional(23, s.string(), 'Preference for the choice of endpoints, e.g. PreferClose.', {
    presence: true,
  }),
});
export interface ServiceSpec extends Infer<typeof serviceSpec> {}
export const ServiceSpecSchema: Schema<ServiceSpec> = serviceSpec;

const serviceStatus = s.message('k8s.io.api.core.v1.ServiceStatus', 'Observed state of a service.', {
  loadBalancer: filled(1, LoadBalancerStatusSchema, 'State of the load balancer, for services that have one.'),
  conditions: optional(2, s.listByKey(conditionSchema, 'type'), 'Latest observations.'),
});
export interface ServiceStatus extends Infer<typeof serviceStatus> {}
export const ServiceStatusSchema: Schema<ServiceStatus> = serviceStatus;

const service = s.message('k8s.io.api.core.v1.Service', 'A stable name and address for a changing set of pods.', {
  spec: embedded(2, ServiceSpecSchema, 'Intended state.'),
  status: filled(3, ServiceStatusSchema, 'Observed state.'),
});
export interface Service extends KubeObject, Infer<typeof service> {}
export const ServiceSchema: Schema<Service> = service;
