import { isIP, isIPv6 } from 'node:net';
import type { Service, ServiceSpec } from '../schema/index.ts';

/** Default timeout of session affinity in seconds: three hours. */
const stickySeconds = 10800;

/**
 * Sets the defaults of a service, which depend on its type: see docs/reference/api-rules.md#defaults-of-kinds.
 * Idempotent.
 */
export function defaultService({ spec, status }: Service): void {
  spec.type ||= 'ClusterIP';
  spec.sessionAffinity ||= 'None';
  for (const port of spec.ports ?? []) {
    port.protocol ||= 'TCP';
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') port.targetPort = port.port;
  }
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig;
  else if (spec.sessionAffinity === 'ClientIP') {
    const config = spec.sessionAffinityConfig?.clientIP;
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds: config?.timeoutSeconds ?? stickySeconds } };
  }
  if (spec.type === 'NodePort' || spec.type === 'LoadBalancer') spec.externalTrafficPolicy ||= 'Cluster';
  if (spec.type === 'LoadBalancer') {
    spec.allocateLoadBalancerNodePorts ??= true;
    for (const point of status?.loadBalancer?.ingress ?? []) if (point.ip) point.ipMode ??= 'VIP';
  }
  if (spec.type === 'ExternalName') return;
  spec.internalTrafficPolicy ||= 'Cluster';
  defaultAddresses(spec);
}

/** Makes `clusterIP` and `clusterIPs` consistent. The default family policy is SingleStack. */
function defaultAddresses(spec: ServiceSpec): void {
  const [first] = spec.clusterIPs ?? [];
  if (spec.clusterIP && first === undefined) spec.clusterIPs = [spec.clusterIP];
  else if (!spec.clusterIP && first) spec.clusterIP = first;
  const addresses = (spec.clusterIPs ?? []).filter((address) => isIP(address) !== 0);
  const several = Math.max(spec.ipFamilies?.length ?? 0, addresses.length) > 1;
  spec.ipFamilyPolicy ||= several ? 'RequireDualStack' : 'SingleStack';
  if (spec.ipFamilies?.length) return;
  spec.ipFamilies = addresses.length > 0 ? addresses.map((address) => (isIPv6(address) ? 'IPv6' : 'IPv4')) : ['IPv4'];
}
