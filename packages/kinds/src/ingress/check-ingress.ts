import { dns1123SubdomainErrors, fieldError, pathSegmentErrors } from '@keelson/core';
import { checkBalancerHostname } from '../validation/addresses.ts';
import type { Errors } from '../validation/checks.ts';
import { checkIp, checkName, checkOneOf, checkText, pushInvalid } from '../validation/checks.ts';
import { standardAddress } from '../validation/parse-address.ts';

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
export const pathTypes = ['Exact', 'ImplementationSpecific', 'Prefix'];
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
    if (standardAddress(rule.host) !== undefined)
      errors.push(fieldError.invalid(`${path}.host`, rule.host, 'must be a DNS name, not an IP address'));
    checkHostName(rule.host, `${path}.host`, errors);
  }
  if (!rule.http) return;
  if (!rule.http.paths?.length) errors.push(fieldError.required(`${path}.http.paths`));
  rule.http.paths?.forEach((entry, i) => {
    const at = `${path}.http.paths[${i}]`;
    checkPath(entry, at, errors);
    checkBackend(entry.backend, `${at}.backend`, errors);
  });
}

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const wildcardSource = `\\*\\.${label}(\\.${label})*`;
const wildcard = new RegExp(`^${wildcardSource}$`);
const wildcardText =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower " +
  "case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used " +
  `for validation is '${wildcardSource}')`;

/** A DNS name, the first label of which may be `*`. */
function checkHostName(host: string, path: string, errors: Errors): void {
  if (!host.includes('*')) {
    pushInvalid(dns1123SubdomainErrors(host), host, path, errors);
    return;
  }
  if (Buffer.byteLength(host) > 253) errors.push(fieldError.invalid(path, host, 'must be no more than 253 characters'));
  else if (!wildcard.test(host)) errors.push(fieldError.invalid(path, host, wildcardText));
}

function checkPath(entry: PathShape<unknown>, path: string, errors: Errors): void {
  checkOneOf(entry.pathType, pathTypes, `${path}.pathType`, errors);
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
  resource: { readonly apiGroup?: string; readonly kind: string; readonly name: string },
  path: string,
  errors: Errors,
): void {
  const { apiGroup } = resource;
  if (apiGroup !== undefined)
    pushInvalid(dns1123SubdomainErrors(apiGroup), apiGroup, `${path}.resource.apiGroup`, errors);
  for (const field of ['kind', 'name'] as const) {
    const at = `${path}.resource.${field}`;
    if (checkText(resource[field], at, errors))
      pushInvalid(pathSegmentErrors(resource[field]), resource[field], at, errors);
  }
}

/** Validates the addresses of the load balancer. */
export function checkIngressStatus(status: StatusShape | undefined, errors: Errors): void {
  status?.loadBalancer?.ingress?.forEach((point, i) => {
    const path = `status.loadBalancer.ingress[${i}]`;
    if (point.ip) checkIp(point.ip, `${path}.ip`, errors);
    checkBalancerHostname(point.hostname, `${path}.hostname`, errors);
  });
}
