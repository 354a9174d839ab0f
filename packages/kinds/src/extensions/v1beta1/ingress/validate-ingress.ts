import { isIP } from 'node:net';
import { type FieldError, fieldError } from '@keelson/core';
import { checkIp, checkName, checkOneOf, checkRequiredName, checkText } from '../../../validation/checks.ts';
import { type Errors, newErrors } from '../../../validation/errors.ts';
import { checkPortNumberOrName } from '../../../validation/ports.ts';
import type { HTTPIngressPath, Ingress, IngressBackend, IngressRule } from '../schema/index.ts';

/** Sequences that mean different things to different proxies. */
const ambiguous = ['//', '/./', '/../', '%2f', '%2F'];
const ambiguousEnds = ['/..', '/.'];

/** A whole ingress: somewhere to send requests to, hosts by name, paths from the root. */
export function validateIngress({ spec }: Ingress): FieldError[] {
  const errors = newErrors();
  if (!spec.backend && !spec.rules?.length) {
    errors.push(fieldError.invalid('spec', spec, 'either `backend` or `rules` must be specified'));
  }
  if (spec.backend) checkBackend(spec.backend, 'spec.backend', errors);
  spec.rules?.forEach((rule, i) => {
    checkRule(rule, `spec.rules[${i}]`, errors);
  });
  spec.tls?.forEach((tls, i) => {
    tls.hosts?.forEach((host, j) => {
      checkHostName(host, `spec.tls[${i}].hosts[${j}]`, errors);
    });
    checkName(tls.secretName, 'dns1123Subdomain', `spec.tls[${i}].secretName`, errors);
  });
  checkName(spec.ingressClassName, 'dns1123Subdomain', 'spec.ingressClassName', errors);
  return errors;
}

function checkRule(rule: IngressRule, path: string, errors: Errors): void {
  if (rule.host) {
    if (isIP(rule.host)) errors.push(fieldError.invalid(`${path}.host`, rule.host, 'must be a DNS name, not an IP address'));
    else checkHostName(rule.host, `${path}.host`, errors);
  }
  if (!rule.http) return;
  if (!rule.http.paths?.length) errors.push(fieldError.required(`${path}.http.paths`));
  rule.http.paths?.forEach((entry, i) => {
    const at = `${path}.http.paths[${i}]`;
    checkPath(entry, at, errors);
    checkBackend(entry.backend, `${at}.backend`, errors);
  });
}

/** A DNS name, the first label of which may be `*`. */
function checkHostName(host: string, path: string, errors: Errors): void {
  const name = host.startsWith('*.') ? host.slice(2) : host;
  if (name === '') errors.push(fieldError.invalid(path, host, 'must be a DNS name, optionally with a leading `*.`'));
  else checkName(name, 'dns1123Subdomain', path, errors);
}

function checkPath(entry: HTTPIngressPath, path: string, errors: Errors): void {
  checkOneOf(entry.pathType, ['Exact', 'ImplementationSpecific', 'Prefix'], `${path}.pathType`, errors);
  const value = entry.path ?? '';
  const exact = entry.pathType === 'Exact' || entry.pathType === 'Prefix';
  if ((value !== '' || exact) && !value.startsWith('/')) {
    errors.push(fieldError.invalid(`${path}.path`, value, 'must be an absolute path'));
    return;
  }
  if (!exact) return;
  for (const sequence of ambiguous) {
    if (value.includes(sequence)) errors.push(fieldError.invalid(`${path}.path`, value, `must not contain '${sequence}'`));
  }
  for (const end of ambiguousEnds) {
    if (value.endsWith(end)) errors.push(fieldError.invalid(`${path}.path`, value, `cannot end with '${end}'`));
  }
}

function checkBackend(backend: IngressBackend, path: string, errors: Errors): void {
  const { resource, serviceName, servicePort } = backend;
  if (resource) {
    if (serviceName || servicePort) {
      errors.push(fieldError.invalid(path, '', 'cannot set both resource and service backends'));
    }
    checkText(resource.kind, `${path}.resource.kind`, errors);
    checkText(resource.name, `${path}.resource.name`, errors);
    return;
  }
  checkRequiredName(serviceName, 'dns1035Label', `${path}.serviceName`, errors);
  checkPortNumberOrName(servicePort, `${path}.servicePort`, errors);
}

/** Points of traffic are named by a real address or a real name. */
export function validateIngressStatus({ status }: Ingress): FieldError[] {
  const errors = newErrors();
  status?.loadBalancer?.ingress?.forEach((point, i) => {
    const path = `status.loadBalancer.ingress[${i}]`;
    if (point.ip) checkIp(point.ip, `${path}.ip`, errors);
    if (!point.hostname) return;
    if (isIP(point.hostname)) {
      errors.push(fieldError.invalid(`${path}.hostname`, point.hostname, 'must be a DNS name, not an IP address'));
    } else checkName(point.hostname, 'dns1123Subdomain', `${path}.hostname`, errors);
  });
  return errors;
}
