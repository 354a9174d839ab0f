import { isIP } from 'node:net';
import { fieldError } from '@keelson/core';
import { checkBalancerHostname } from '../validation/addresses.ts';
import type { Errors } from '../validation/checks.ts';
import { checkIp, checkName, checkOneOf, checkText } from '../validation/checks.ts';

/** The rules of an ingress. Only the type of backends depends on the API version. */
interface RuleShape<B> {
  readonly host?: string;
  readonly http?: { readonly paths: readonly PathShape<B>[] };
}
interface PathShape<B> {
  readonly path?: string;
  readonly pathType?: string;
  readonly backend: B;
}
interface SpecShape<B> {
  readonly ingressClassName?: string;
  readonly rules?: readonly RuleShape<B>[];
  readonly tls?: readonly { readonly hosts?: readonly string[]; readonly secretName?: string }[];
}
interface StatusShape {
  readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] };
}
type BackendCheck<B> = (backend: B, path: string, errors: Errors) => void;

/** Invalid sequences in paths, because proxies interpret them differently. */
const ambiguous = ['//', '/./', '/../', '%2f', '%2F'];
const ambiguousEnds = ['/..', '/.'];

/** Validates the spec of an ingress except its default backend. */
export function checkIngressSpec<B>(spec: SpecShape<B>, checkBackend: BackendCheck<B>, errors: Errors): void {
  spec.rules?.forEach((rule, i) => {
    checkRule(rule, `spec.rules[${i}]`, checkBackend, errors);
  });
  spec.tls?.forEach((tls, i) => {
    tls.hosts?.forEach((host, j) => {
      checkHostName(host, `spec.tls[${i}].hosts[${j}]`, errors);
    });
    checkName(tls.secretName, 'dns1123Subdomain', `spec.tls[${i}].secretName`, errors);
  });
  checkName(spec.ingressClassName, 'dns1123Subdomain', 'spec.ingressClassName', errors);
}

function checkRule<B>(rule: RuleShape<B>, path: string, checkBackend: BackendCheck<B>, errors: Errors): void {
  if (rule.host) {
    if (isIP(rule.host))
      errors.push(fieldError.invalid(`${path}.host`, rule.host, 'must be a DNS name, not an IP address'));
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

function checkPath(entry: PathShape<unknown>, path: string, errors: Errors): void {
  checkOneOf(entry.pathType, ['Exact', 'ImplementationSpecific', 'Prefix'], `${path}.pathType`, errors);
  const value = entry.path ?? '';
  const exact = entry.pathType === 'Exact' || entry.pathType === 'Prefix';
  if ((value !== '' || exact) && !value.startsWith('/')) {
    errors.push(fieldError.invalid(`${path}.path`, value, 'must be an absolute path'));
    return;
  }
  if (!exact) return;
  for (const sequence of ambiguous) {
    if (value.includes(sequence))
      errors.push(fieldError.invalid(`${path}.path`, value, `must not contain '${sequence}'`));
  }
  for (const end of ambiguousEnds) {
    if (value.endsWith(end)) errors.push(fieldError.invalid(`${path}.path`, value, `cannot end with '${end}'`));
  }
}

/** Validates a backend that is a reference to an object instead of a service. */
export function checkResourceBackend(
  resource: { readonly kind: string; readonly name: string },
  path: string,
  errors: Errors,
): void {
  checkText(resource.kind, `${path}.resource.kind`, errors);
  checkText(resource.name, `${path}.resource.name`, errors);
}

/** Validates the addresses of the load balancer. */
export function checkIngressStatus(status: StatusShape | undefined, errors: Errors): void {
  status?.loadBalancer?.ingress?.forEach((point, i) => {
    const path = `status.loadBalancer.ingress[${i}]`;
    if (point.ip) checkIp(point.ip, `${path}.ip`, errors);
    checkBalancerHostname(point.hostname, `${path}.hostname`, errors);
  });
}
