import { isIP, isIPv6 } from 'node:net';
import { sameJson } from '../../../validation/checks.ts';
import type { Service, ServicePort, ServiceSpec } from '../schema/index.ts';

const hasClusterIp = (spec: ServiceSpec) => spec.type !== 'ExternalName';
const hasNodePorts = (spec: ServiceSpec) => spec.type === 'NodePort' || spec.type === 'LoadBalancer';

/**
 * Copies allocated fields that the body of a write omits from the stored service: see
 * docs/reference/api-rules.md#allocated-fields-of-services.
 */
export function keepAllocated({ spec }: Service, { spec: old }: Service): void {
  if (hasClusterIp(spec) && hasClusterIp(old)) {
    if (!spec.clusterIP && old.clusterIP) spec.clusterIP = old.clusterIP;
    if (!spec.clusterIPs?.length && old.clusterIPs) spec.clusterIPs = [...old.clusterIPs];
  }
  if (hasNodePorts(spec) && hasNodePorts(old)) {
    const allocated = new Map((old.ports ?? []).map(({ name = '', nodePort }) => [name, nodePort]));
    const taken = new Set((spec.ports ?? []).map((port) => port.nodePort));
    for (const port of spec.ports ?? []) {
      const before = allocated.get(port.name ?? '');
      if (!port.nodePort && before && !taken.has(before)) port.nodePort = before;
    }
  }
  if (needsHealthCheckPort(spec) && needsHealthCheckPort(old) && !spec.healthCheckNodePort && old.healthCheckNodePort) {
    spec.healthCheckNodePort = old.healthCheckNodePort;
  }
}

/** Makes `clusterIP` and `clusterIPs` consistent, and infers the address families and their policy. */
export function completeAddresses(spec: ServiceSpec, old?: ServiceSpec): void {
  if (spec.clusterIP !== old?.clusterIP && sameJson(spec.clusterIPs, old?.clusterIPs)) {
    // The client sent only the older field, or the stored `clusterIPs` unchanged.
    if (spec.clusterIP) spec.clusterIPs = [spec.clusterIP];
    else delete spec.clusterIPs;
  }
  if (!hasClusterIp(spec)) {
    if (!spec.clusterIP) delete spec.clusterIP;
    return;
  }
  const isOpen = spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ||= old?.ipFamilyPolicy ?? (isOpen ? 'RequireDualStack' : 'SingleStack');
  if (old && spec.ipFamilyPolicy === 'SingleStack') {
    for (const field of ['clusterIPs', 'ipFamilies'] as const)
      if ((spec[field]?.length ?? 0) > 1 && sameJson(spec[field], old[field])) spec[field] = [spec[field]?.[0] ?? ''];
  }
  if (spec.clusterIP === 'None' && old?.clusterIP === 'None' && !spec.ipFamilies?.length) {
    if (old.ipFamilies) spec.ipFamilies = [...old.ipFamilies];
  }
  const families = spec.ipFamilies ?? [];
  const addresses = (spec.clusterIPs ?? []).filter((address) => isIP(address) !== 0);
  for (const address of addresses.slice(families.length)) families.push(isIPv6(address) ? 'IPv6' : 'IPv4');
  if (families.length === 0) families.push('IPv4');
  // A headless service without a selector may have endpoints of every family, whatever the cluster supports.
  if (isOpen && families.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    families.push(families[0] === 'IPv4' ? 'IPv6' : 'IPv4');
  }
  spec.ipFamilies = families;
}

/** Removes fields of the old type that the client sent unchanged, and the addresses of a former load balancer. */
export function dropForeign(service: Service, { spec: old }: Service): void {
  const { spec, status } = service;
  if (spec.type !== 'LoadBalancer' && status?.loadBalancer?.ingress?.length) {
    service.status = { ...status, loadBalancer: {} };
  }
  const carried = (field: keyof ServiceSpec) => spec[field] !== undefined && sameJson(spec[field], old[field]);
  if (!hasClusterIp(spec) && hasClusterIp(old) && carried('clusterIP') && carried('clusterIPs')) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (!hasClusterIp(spec) && hasClusterIp(old)) {
    for (const field of ['ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy'] as const)
      if (carried(field)) delete spec[field];
  }
  if (!hasNodePorts(spec) && hasNodePorts(old) && hasNoNewNodePort(spec.ports, old.ports)) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (!isExternallyAccessible(spec) && carried('externalTrafficPolicy')) delete spec.externalTrafficPolicy;
  if (!needsHealthCheckPort(spec) && needsHealthCheckPort(old) && carried('healthCheckNodePort'))
    delete spec.healthCheckNodePort;
  if (spec.type !== 'LoadBalancer' && old.type === 'LoadBalancer') {
    for (const field of ['allocateLoadBalancerNodePorts', 'loadBalancerClass'] as const)
      if (carried(field)) delete spec[field];
  }
}

export function needsHealthCheckPort(spec: ServiceSpec): boolean {
  return spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local';
}

/** Whether clients outside the cluster reach the service by an address or port of it. */
export function isExternallyAccessible(spec: ServiceSpec): boolean {
  return hasNodePorts(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs?.length ?? 0) > 0);
}

function hasNoNewNodePort(ports: readonly ServicePort[] = [], old: readonly ServicePort[] = []): boolean {
  const known = new Set(old.map(({ nodePort }) => nodePort));
  return ports.every(({ nodePort }) => !nodePort || known.has(nodePort));
}
