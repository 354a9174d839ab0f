import type { Service } from '../schema/index.ts';
import { isExternallyAccessible } from './service-update.ts';

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
  if (isExternallyAccessible(spec)) spec.externalTrafficPolicy ||= 'Cluster';
  if (spec.type === 'LoadBalancer') {
    spec.allocateLoadBalancerNodePorts ??= true;
    for (const point of status?.loadBalancer?.ingress ?? []) if (point.ip) point.ipMode ??= 'VIP';
  }
  if (spec.type !== 'ExternalName') spec.internalTrafficPolicy ||= 'Cluster';
}
