import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const portStatus = s.message('k8s.io.api.core.v1.PortStatus', 'State of one port of a load balancer.', {
  port: always(1, s.int32(), 'Number of the port.'),
  protocol: always(2, s.string({ values: ['SCTP', 'TCP', 'UDP'] }), 'TCP, UDP or SCTP.'),
  error: optional(3, s.string(), 'Why the port does not work, as a CamelCase word.', { presence: true }),
});
export interface PortStatus extends Infer<typeof portStatus> {}
export const PortStatusSchema: Schema<PortStatus> = portStatus;

const loadBalancerIngress = s.message('k8s.io.api.core.v1.LoadBalancerIngress', 'One address of a load balancer.', {
  ip: optional(1, s.string(), 'Address, for balancers that are reached by IP.'),
  hostname: optional(2, s.string(), 'DNS name, for balancers that are reached by name.'),
  ipMode: optional(
    3,
    s.string(),
    "VIP when traffic arrives with the balancer's address as destination, Proxy when with that of the node or pod.",
    { presence: true },
  ),
  ports: optional(4, s.list(PortStatusSchema, { listType: 'atomic' }), 'State of the single ports.'),
});
export interface LoadBalancerIngress extends Infer<typeof loadBalancerIngress> {}
export const LoadBalancerIngressSchema: Schema<LoadBalancerIngress> = loadBalancerIngress;

const loadBalancerStatus = s.message('k8s.io.api.core.v1.LoadBalancerStatus', 'State of a load balancer.', {
  ingress: optional(1, s.list(LoadBalancerIngressSchema, { listType: 'atomic' }), 'Addresses of the load balancer.'),
});
export interface LoadBalancerStatus extends Infer<typeof loadBalancerStatus> {}
export const LoadBalancerStatusSchema: Schema<LoadBalancerStatus> = loadBalancerStatus;
