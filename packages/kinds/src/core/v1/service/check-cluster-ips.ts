import { isIPv6 } from 'node:net';
import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkIp, checkOneOf, checkUnique } from '../../../validation/checks.ts';
import type { ServiceSpec } from '../schema/index.ts';

const families = ['IPv4', 'IPv6'];
const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

/** Validates cluster IPs: absent, `None`, or one of each family; `clusterIP` is the first. */
export function checkClusterIps(spec: ServiceSpec, errors: Errors): void {
  const { clusterIP = '', clusterIPs = [], ipFamilies = [] } = spec;
  if (spec.type === 'ExternalName') {
    for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
      if (spec[field]?.length)
        errors.push(fieldError.forbidden(`spec.${field}`, 'may not be set for ExternalName services'));
    }
    return;
  }
  if (clusterIP === 'None' && (spec.type === 'NodePort' || spec.type === 'LoadBalancer')) {
    errors.push(
      fieldError.invalid('spec.clusterIPs[0]', clusterIP, `may not be set to 'None' for ${spec.type} services`),
    );
  }
  if (clusterIPs.length > 0 && clusterIP !== clusterIPs[0]) {
    const detail = clusterIP ? 'first value must match `clusterIP`' : 'must be empty when `clusterIP` is not specified';
    errors.push(fieldError.invalid('spec.clusterIPs', clusterIPs, detail));
  }
  const seenFamilies = new Set<string>();
  ipFamilies.forEach((family, i) => {
    checkOneOf(family, families, `spec.ipFamilies[${i}]`, errors);
    checkUnique(family, seenFamilies, `spec.ipFamilies[${i}]`, errors);
  });
  checkOneOf(spec.ipFamilyPolicy, policies, 'spec.ipFamilyPolicy', errors);
  if (!checkList(clusterIPs, errors) || clusterIP === 'None') return;
  clusterIPs.forEach((address, i) => {
    const family = ipFamilies[i];
    if (family === undefined || isIPv6(address) === (family === 'IPv6')) return;
    const detail = `expected an ${family} value as indicated by \`ipFamilies[${i}]\``;
    errors.push(fieldError.invalid(`spec.clusterIPs[${i}]`, address, detail));
  });
  if (spec.ipFamilyPolicy !== 'SingleStack') return;
  const several = (what: string) =>
    `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`;
  for (const [count, what] of [
    [clusterIPs.length, 'cluster IPs'],
    [ipFamilies.length, 'IP families'],
  ] as const) {
    if (count === 2) errors.push(fieldError.invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, several(what)));
  }
}

/** Returns whether the addresses are valid, so that they can be compared with other fields. */
function checkList(addresses: readonly string[], errors: Errors): boolean {
  const before = errors.length;
  if (addresses[0] === 'None') {
    if (addresses.length === 1) return true;
    errors.push(fieldError.invalid('spec.clusterIPs', addresses, "'None' must be the first and only value"));
  }
  if (addresses.length > 2) {
    errors.push(fieldError.invalid('spec.clusterIPs', addresses, 'may only hold up to 2 values'));
    return false;
  }
  addresses.forEach((address, i) => {
    if (i > 0 || address !== 'None') checkIp(address, `spec.clusterIPs[${i}]`, errors);
  });
  if (errors.length > before) return false;
  const [first = '', second = ''] = addresses;
  if (addresses.length === 2 && isIPv6(first) === isIPv6(second)) {
    const detail = 'may specify no more than one IP for each IP family';
    errors.push(fieldError.invalid('spec.clusterIPs', addresses, detail));
  }
  return true;
}

/** Validates a change of cluster IPs and families. The first ones stay, and the second ones need a policy to go. */
export function checkClusterIpsUpdate(spec: ServiceSpec, old: ServiceSpec, errors: Errors): void {
  if (spec.type === 'ExternalName' || old.type === 'ExternalName') return;
  const isHeadless = spec.clusterIP === 'None';
  const wasHeadless = old.clusterIP === 'None';
  if (isHeadless && wasHeadless) return;
  const { clusterIPs = [], ipFamilies = [], ipFamilyPolicy = '' } = spec;
  const { clusterIPs: oldIPs = [], ipFamilies: oldFamilies = [] } = old;
  const reportRelease = (what: string) => {
    const detail = `must be 'SingleStack' to release the secondary ${what}`;
    errors.push(fieldError.invalid('spec.ipFamilyPolicy', ipFamilyPolicy, detail));
  };
  if (ipFamilyPolicy !== 'SingleStack') {
    if (clusterIPs.length < oldIPs.length) reportRelease('cluster IP');
    // That the families fit the addresses, which stay, is checked in every service.
    if (isHeadless === wasHeadless && ipFamilies.length < oldFamilies.length) reportRelease('IP family');
  }
  const fixed = clusterIPs.length === oldIPs.length ? oldIPs : oldIPs.slice(0, 1);
  fixed.forEach((address, i) => {
    if (address === clusterIPs[i]) return;
    errors.push(fieldError.invalid(`spec.clusterIPs[${i}]`, clusterIPs, 'may not change once set'));
  });
}
