import { type FieldError, fieldError, qualifiedNameErrors } from '@keelson/core';
import { checkBalancerHostname, checkPublicAddress } from '../../../validation/addresses.ts';
import {
  checkCidr,
  checkIp,
  checkLabels,
  checkName,
  checkOneOf,
  checkRange,
  checkRequiredOneOf,
  checkText,
  checkUnchanged,
  type Errors,
  newErrors,
  pushInvalid,
} from '../../../validation/checks.ts';
import type { Service, ServiceSpec } from '../schema/index.ts';
import { checkClusterIps } from './check-cluster-ips.ts';
import { checkServicePorts } from './check-service-ports.ts';
import { needsHealthCheckPort } from './service-update.ts';

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const trafficPolicies = ['Cluster', 'Local'];
const ipModes = ['Proxy', 'VIP'];
const maxStickySeconds = 86400;

/** Validates a whole service: see docs/reference/api-rules.md#validation-of-kinds. */
export function validateService({ spec }: Service): FieldError[] {
  const errors = newErrors();
  checkServicePorts(spec, 'spec.ports', errors);
  checkRequiredOneOf(spec.type, types, 'spec.type', errors);
  checkLabels(spec.selector, 'spec.selector', errors);
  checkAffinity(spec, errors);
  checkClusterIps(spec, errors);
  if (spec.type === 'ExternalName') checkExternalName(spec, errors);
  spec.externalIPs?.forEach((address, i) => {
    const path = `spec.externalIPs[${i}]`;
    if (checkIp(address, path, errors)) checkPublicAddress(address, path, errors);
  });
  checkTrafficPolicies(spec, errors);
  checkLoadBalancer(spec, errors);
  return errors;
}

function checkAffinity(spec: ServiceSpec, errors: Errors): void {
  checkRequiredOneOf(spec.sessionAffinity, ['ClientIP', 'None'], 'spec.sessionAffinity', errors);
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (seconds !== undefined && (seconds <= 0 || seconds > maxStickySeconds)) {
    const detail = `must be greater than 0 and less than ${maxStickySeconds}`;
    errors.push(fieldError.invalid('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, detail));
  }
}

/** Validates a service of type ExternalName. */
function checkExternalName(spec: ServiceSpec, errors: Errors): void {
  const name = spec.externalName?.endsWith('.') ? spec.externalName.slice(0, -1) : spec.externalName;
  if (checkText(name, 'spec.externalName', errors)) checkName(name, 'dns1123Subdomain', 'spec.externalName', errors);
}

function checkTrafficPolicies(spec: ServiceSpec, errors: Errors): void {
  checkOneOf(spec.internalTrafficPolicy, trafficPolicies, 'spec.internalTrafficPolicy', errors);
  checkOneOf(
    spec.trafficDistribution,
    ['PreferClose', 'PreferSameNode', 'PreferSameZone'],
    'spec.trafficDistribution',
    errors,
  );
  const external = spec.externalTrafficPolicy;
  const reachable = spec.type === 'NodePort' || spec.type === 'LoadBalancer' || (spec.externalIPs?.length ?? 0) > 0;
  if (external && !reachable) {
    const detail = 'may only be set for externally-accessible services';
    errors.push(fieldError.invalid('spec.externalTrafficPolicy', external, detail));
  } else checkOneOf(external, trafficPolicies, 'spec.externalTrafficPolicy', errors);
  const port = spec.healthCheckNodePort;
  if (!port) return;
  checkRange(port, 0, 65535, 'spec.healthCheckNodePort', errors);
  if (!needsHealthCheckPort(spec)) {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(fieldError.invalid('spec.healthCheckNodePort', port, detail));
  }
}

function checkLoadBalancer(spec: ServiceSpec, errors: Errors): void {
  const only = "may only be used when `type` is 'LoadBalancer'";
  const balanced = spec.type === 'LoadBalancer';
  if (spec.loadBalancerSourceRanges?.length && !balanced) {
    errors.push(fieldError.forbidden('spec.loadBalancerSourceRanges', only));
  }
  spec.loadBalancerSourceRanges?.forEach((range, i) => {
    checkCidr(range.trim(), `spec.loadBalancerSourceRanges[${i}]`, errors);
  });
  if (spec.allocateLoadBalancerNodePorts !== undefined && !balanced) {
    errors.push(fieldError.forbidden('spec.allocateLoadBalancerNodePorts', only));
  }
  if (spec.loadBalancerClass === undefined) return;
  if (!balanced) errors.push(fieldError.forbidden('spec.loadBalancerClass', only));
  pushInvalid(qualifiedNameErrors(spec.loadBalancerClass), spec.loadBalancerClass, 'spec.loadBalancerClass', errors);
}

/** Validates the addresses of the load balancer, which only a service of type LoadBalancer has. */
export function validateServiceStatus({ spec, status }: Service): FieldError[] {
  const errors = newErrors();
  const points = status?.loadBalancer?.ingress ?? [];
  const path = 'status.loadBalancer.ingress';
  if (spec.type !== 'LoadBalancer') {
    if (points.length === 0) return errors;
    return [fieldError.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  points.forEach(({ hostname, ip, ipMode }, i) => {
    const at = `${path}[${i}]`;
    if (ip) checkIp(ip, `${at}.ip`, errors);
    if (ip && ipMode === undefined) {
      errors.push(fieldError.required(`${at}.ipMode`, 'must be specified when `ip` is set'));
    } else if (!ip && ipMode !== undefined) {
      errors.push(fieldError.forbidden(`${at}.ipMode`, 'may not be specified when `ip` is not set'));
    } else if (ipMode !== undefined && !ipModes.includes(ipMode)) {
      errors.push(fieldError.notSupported(`${at}.ipMode`, ipMode, ipModes));
    }
    checkBalancerHostname(hostname, `${at}.hostname`, errors);
  });
  return errors;
}

/** Cluster IPs and load balancer class are immutable while the type requires them. */
export function validateServiceUpdate({ spec }: Service, { spec: old }: Service): FieldError[] {
  const errors = newErrors();
  if (old.type !== 'ExternalName' && spec.type !== 'ExternalName' && old.clusterIP) {
    checkUnchanged(spec.clusterIP, old.clusterIP, 'spec.clusterIP', errors);
  }
  if (old.type === 'LoadBalancer' && spec.type === 'LoadBalancer') {
    checkUnchanged(spec.loadBalancerClass, old.loadBalancerClass, 'spec.loadBalancerClass', errors);
  }
  return errors;
}
