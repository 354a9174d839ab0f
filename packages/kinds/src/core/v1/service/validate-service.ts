import { type FieldError, fieldError, qualifiedNameErrors } from '@keelson/core';
import { checkBalancerHostname, checkPublicAddress } from '../../../validation/addresses.ts';
import {
  checkCidr,
  checkIp,
  checkLabels,
  checkName,
  checkOneOf,
  checkRequiredOneOf,
  checkText,
  type Errors,
  isFull,
  newErrors,
  pushInvalid,
} from '../../../validation/checks.ts';
import { checkPortNumber } from '../../../validation/ports.ts';
import type { Service, ServiceSpec } from '../schema/index.ts';
import { checkClusterIps, checkClusterIpsUpdate } from './check-cluster-ips.ts';
import { checkServicePorts } from './check-service-ports.ts';
import { isExternallyAccessible, needsHealthCheckPort } from './service-update.ts';

const types = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const trafficPolicies = ['Cluster', 'Local'];
const ipModes = ['Proxy', 'VIP'];
const only = "may only be used when `type` is 'LoadBalancer'";
export const topologyHints = 'service.kubernetes.io/topology-aware-hints';
export const topologyMode = 'service.kubernetes.io/topology-mode';
const sourceRanges = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const maxStickySeconds = 86400;

/** Validates a whole service: see docs/reference/api-rules.md#validation-of-kinds. */
export function validateService({ metadata, spec }: Service): FieldError[] {
  const errors = newErrors();
  checkTopologyAnnotations(metadata?.annotations, errors);
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
  if (!spec.loadBalancerSourceRanges?.length) checkSourceRangesAnnotation(metadata?.annotations, spec, errors);
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
  if (external && !isExternallyAccessible(spec)) {
    const detail = 'may only be set for externally-accessible services';
    errors.push(fieldError.invalid('spec.externalTrafficPolicy', external, detail));
  } else checkOneOf(external, trafficPolicies, 'spec.externalTrafficPolicy', errors);
  const port = spec.healthCheckNodePort;
  if (!port) return;
  if (needsHealthCheckPort(spec)) checkPortNumber(port, 'spec.healthCheckNodePort', errors);
  else {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(fieldError.invalid('spec.healthCheckNodePort', port, detail));
  }
}

type Annotations = Readonly<Record<string, string>> | undefined;

function checkTopologyAnnotations(annotations: Annotations, errors: Errors): void {
  const hints = annotations?.[topologyHints];
  const mode = annotations?.[topologyMode];
  if (hints === undefined || mode === undefined || hints === mode) return;
  const detail = `must match annotations[${topologyHints}] when both are specified`;
  errors.push(fieldError.invalid(`metadata.annotations[${topologyMode}]`, mode, detail));
}

/** The annotation that clients used before the field. */
function checkSourceRangesAnnotation(annotations: Annotations, spec: ServiceSpec, errors: Errors): void {
  const ranges = annotations?.[sourceRanges];
  if (ranges === undefined) return;
  const path = `metadata.annotations[${sourceRanges}]`;
  if (spec.type !== 'LoadBalancer') errors.push(fieldError.forbidden(path, only));
  if (ranges.trim() === '') return;
  for (const range of ranges.split(',')) {
    if (isFull(errors)) return;
    checkCidr(range.trim(), path, errors);
  }
}

function checkLoadBalancer(spec: ServiceSpec, errors: Errors): void {
  const balanced = spec.type === 'LoadBalancer';
  if (spec.loadBalancerSourceRanges?.length && !balanced) {
    errors.push(fieldError.forbidden('spec.LoadBalancerSourceRanges', only));
  }
  spec.loadBalancerSourceRanges?.forEach((range, i) => {
    checkCidr(range.trim(), `spec.LoadBalancerSourceRanges[${i}]`, errors);
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

/** Cluster IPs, load balancer class and health check port are immutable while the type requires them. */
export function validateServiceUpdate({ spec }: Service, { spec: old }: Service): FieldError[] {
  const errors = newErrors();
  checkClusterIpsUpdate(spec, old, errors);
  const isBalanced = old.type === 'LoadBalancer' && spec.type === 'LoadBalancer';
  if (isBalanced && spec.loadBalancerClass !== old.loadBalancerClass) {
    const value = spec.loadBalancerClass ?? null;
    errors.push(fieldError.invalid('spec.loadBalancerClass', value, 'may not change once set'));
  }
  const isChecked = needsHealthCheckPort(old) && needsHealthCheckPort(spec);
  if (isChecked && spec.healthCheckNodePort !== old.healthCheckNodePort) {
    errors.push(fieldError.forbidden('spec.healthCheckNodePort', 'field is immutable'));
  }
  return errors;
}
