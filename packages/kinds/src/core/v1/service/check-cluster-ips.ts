import { isIPv6 } from 'node:net';
import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkIp, checkOneOf, checkUnique } from '../../../validation/checks.ts';
import type { ServiceSpec } from '../schema/index.ts';

const families = ['IPv4', 'IPv6'];
const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

/** Validates cluster IPs: absent, `None`, or one of each family; `clusterIP` is the first. */
export function checkClusterIps(spec: ServiceSpec, errors: Errors): void {
  const { clusterIP = '', clusterIPs = [] } = spec;
  if (spec.type === 'ExternalName') {
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
      if (spec[field]?.length)
        errors.push(fieldError.forbidden(`spec.${field}`, 'may not be set for ExternalName services'));
    }
    return;
  }
  if (clusterIP === 'None' && (spec.type === 'NodePort' || spec.type === 'LoadBalancer')) {
    errors.push(
      fieldError.invalid('spec.clusterIPs[0]', clusterIP, `may not be set to 'None' for ${spec.type} services`),
    );
  } else if (clusterIP && clusterIP !== 'None') checkIp(clusterIP, 'spec.clusterIP', errors);
  if (clusterIPs.length > 0 && clusterIP !== clusterIPs[0]) {
    errors.push(fieldError.invalid('spec.clusterIPs', clusterIPs, 'first value must match `clusterIP`'));
  }
  checkList(clusterIPs, errors);
  const seenFamilies = new Set<string>();
  spec.ipFamilies?.forEach((family, i) => {
    checkOneOf(family, families, `spec.ipFamilies[${i}]`, errors);
    checkUnique(family, seenFamilies, `spec.ipFamilies[${i}]`, errors);
  });
  checkOneOf(spec.ipFamilyPolicy, policies, 'spec.ipFamilyPolicy', errors);
  if (spec.ipFamilyPolicy === 'SingleStack' && Math.max(clusterIPs.length, spec.ipFamilies?.length ?? 0) > 1) {
    const detail = 'must be RequireDualStack or PreferDualStack when multiple addresses or families are specified';
    errors.push(fieldError.invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, detail));
  }
}

function checkList(addresses: readonly string[], errors: Errors): void {
  if (addresses.length > 2) {
    errors.push(fieldError.invalid('spec.clusterIPs', addresses, 'may only hold up to 2 values'));
    return;
  }
  const seen = new Set<boolean>();
  addresses.forEach((address, i) => {
    const path = `spec.clusterIPs[${i}]`;
    if (address === 'None') {
      if (addresses.length > 1)
        errors.push(fieldError.invalid(path, address, "'None' must be the first and only value"));
      return;
    }
    // The first address equals `clusterIP`, whose validation reports its errors.
    if (i > 0 && !checkIp(address, path, errors)) return;
    if (seen.has(isIPv6(address)))
      errors.push(
        fieldError.invalid('spec.clusterIPs', addresses, 'may specify no more than one IP for each IP family'),
      );
    seen.add(isIPv6(address));
  });
}
