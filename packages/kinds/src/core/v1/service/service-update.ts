import { sameJson } from '../../../validation/checks.ts';
import type { Service, ServicePort, ServiceSpec } from '../schema/index.ts';

const hasClusterIp = (spec: ServiceSpec) => spec.type !== 'ExternalName';
const hasNodePorts = (spec: ServiceSpec) => spec.type === 'NodePort' || spec.type === 'LoadBalancer';

/**
 * Copies allocated fields that the body of a write omits from the stored service: see
 * docs/reference/api-rules.md#allocated-fields-of-services.
 */
export function keepAllocated({ spec }: Service, { spec: old }: Service): void {
  if (hasClusterIp(spec) && hasClusterIp(old) && !spec.clusterIP && old.clusterIP) {
    spec.clusterIP = old.clusterIP;
    spec.clusterIPs = old.clusterIPs ?? [old.clusterIP];
    if (old.ipFamilies) spec.ipFamilies = old.ipFamilies;
    if (old.ipFamilyPolicy) spec.ipFamilyPolicy = old.ipFamilyPolicy;
  }
  // The client changed only `clusterIP` and sent the stored `clusterIPs` unchanged.
  if (spec.clusterIP && spec.clusterIP !== old.clusterIP && sameJson(spec.clusterIPs, old.clusterIPs)) {
    spec.clusterIPs = [spec.clusterIP];
  }
  if (hasNodePorts(spec) && hasNodePorts(old)) {
    const allocated = new Map((old.ports ?? []).map((port) => [portKey(port), port.nodePort]));
    const taken = new Set((spec.ports ?? []).map((port) => port.nodePort));
    for (const port of spec.ports ?? []) {
      const before = allocated.get(portKey(port));
      if (!port.nodePort && before && !taken.has(before)) port.nodePort = before;
    }
  }
  if (needsHealthCheckPort(spec) && needsHealthCheckPort(old) && !spec.healthCheckNodePort && old.healthCheckNodePort) {
    spec.healthCheckNodePort = old.healthCheckNodePort;
  }
}

/** Removes fields of the old type that the client sent unchanged, and the addresses of a former load balancer. */
export function dropForeign(service: Service, { spec: old }: Service): void {
  const { spec, status } = service;
  if (spec.type !== 'LoadBalancer' && status?.loadBalancer?.ingress?.length) {
    service.status = { ...status, loadBalancer: {} };
  }
  const carried = (field: keyof ServiceSpec) => spec[field] !== undefined && sameJson(spec[field], old[field]);
  if (!hasClusterIp(spec) && hasClusterIp(old) && carried('clusterIP')) {
    delete spec.clusterIP;
    delete spec.clusterIPs;
  }
  if (!hasClusterIp(spec) && hasClusterIp(old)) {
    for (const field of ['ipFamilies', 'ipFamilyPolicy', 'internalTrafficPolicy'] as const)
      if (carried(field)) delete spec[field];
  }
  if (!hasNodePorts(spec) && hasNodePorts(old)) {
    if (sameNodePorts(spec.ports, old.ports)) for (const port of spec.ports ?? []) delete port.nodePort;
    if (carried('externalTrafficPolicy')) delete spec.externalTrafficPolicy;
  }
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

function portKey(port: ServicePort): string {
  return `${port.protocol ?? 'TCP'}/${port.port}`;
}

function sameNodePorts(ports: readonly ServicePort[] | undefined, old: readonly ServicePort[] | undefined): boolean {
  const numbers = (list: readonly ServicePort[] | undefined) =>
    (list ?? []).map((port) => port.nodePort ?? 0).sort((a, b) => a - b);
  return sameJson(numbers(ports), numbers(old));
}
