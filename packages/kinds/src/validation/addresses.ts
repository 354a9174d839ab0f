import { BlockList, isIP, isIPv4 } from 'node:net';
import { fieldError } from '@keelson/core';
import { checkCidr, checkIp, checkName, type Errors } from './checks.ts';
import { type Cidr, standardAddress } from './parse-address.ts';

function listOf(...ranges: [address: string, bits: number][]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of ranges) list.addSubnet(address, bits, isIPv4(address) ? 'ipv4' : 'ipv6');
  return list;
}

const reserved: readonly (readonly [BlockList, string])[] = [
  [listOf(['0.0.0.0', 32], ['::', 128]), 'may not be unspecified (0.0.0.0 or ::)'],
  [listOf(['127.0.0.0', 8], ['::1', 128]), 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
  [listOf(['169.254.0.0', 16], ['fe80::', 10]), 'may not be in the link-local range (169.254.0.0/16,fe80::/10)'],
  [listOf(['224.0.0.0', 24], ['ff02::', 16]), 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
];

/** Rejects unspecified, loopback and link-local addresses. `ip` must be a valid address. */
export function checkPublicAddress(ip: string, path: string, errors: Errors): void {
  const standard = standardAddress(ip) ?? '';
  const family = isIPv4(standard) ? 'ipv4' : 'ipv6';
  for (const [list, detail] of reserved)
    if (list.check(standard, family)) errors.push(fieldError.invalid(path, ip, detail));
}

/** Requires a DNS name that is no address, as the host name of a load balancer; an absent or empty one is valid. */
export function checkBalancerHostname(name: string | undefined, path: string, errors: Errors): void {
  checkName(name, 'dns1123Subdomain', path, errors);
  if (name && isIP(name)) errors.push(fieldError.invalid(path, name, 'must be a DNS name, not an IP address'));
}

/** Requires an IPv4 or IPv6 address in its canonical form. */
export function checkCanonicalIp(value: string, path: string, errors: Errors): boolean {
  if (!checkIp(value, path, errors)) return false;
  if (isIPv4(value)) return true;
  const canonical = standardAddress(value) ?? '';
  if (isIP(value) === 0) errors.push(fieldError.invalid(path, value, 'must not have leading 0s'));
  else if (isIPv4(canonical)) {
    errors.push(fieldError.invalid(path, value, 'must not be an IPv4-mapped IPv6 address'));
  } else if (canonical !== value) {
    errors.push(fieldError.invalid(path, value, `must be in canonical form (${JSON.stringify(canonical)})`));
  } else return true;
  return false;
}

/** Requires a network in CIDR notation in its canonical form; returns it, also when only the form is wrong. */
export function checkCanonicalCidr(value: string, path: string, errors: Errors): Cidr | undefined {
  const cidr = checkCidr(value, path, errors);
  if (cidr === undefined || cidr.network === value) return cidr;
  const [address = '', bits = ''] = value.split('/');
  let detail = `must be in canonical form (${JSON.stringify(cidr.network)})`;
  if (isIP(address) === 0 || /^0\d/.test(bits)) detail = 'must not have leading 0s in IP or prefix length';
  else if (!isIPv4(address) && isIPv4(cidr.address)) detail = 'must not have an IPv4-mapped IPv6 address';
  else if (!cidr.network.startsWith(`${cidr.address}/`)) detail = 'must not have bits set beyond the prefix length';
  errors.push(fieldError.invalid(path, value, detail));
  return cidr;
}
