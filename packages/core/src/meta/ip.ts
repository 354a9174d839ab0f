import { BlockList, isIPv4 as nodeIsIPv4, isIPv6 as nodeIsIPv6 } from 'node:net';

/** True for a dotted IPv4 address without leading zeros. */
export function isIPv4(text: string): boolean {
  return nodeIsIPv4(text);
}

/**
 * True for an IPv6 address. Addresses with a zone (`fe80::1%eth0`) mean something on one machine only and are none
 * here.
 */
export function isIPv6(text: string): boolean {
  // Names have no colon. The pattern of Node, which takes 4 ms for its first text, is not needed for them.
  return text.includes(':') && nodeIsIPv6(text) && !text.includes('%');
}

/** True for an address of either family. */
export function isIP(text: string): boolean {
  return isIPv4(text) || isIPv6(text);
}

/** True for an address and the length of its network part: `10.0.0.0/8`, `fd00::/64`. */
export function isCIDR(text: string): boolean {
  const [address = '', length = '', ...rest] = text.split('/', 3);
  if (rest.length > 0 || !/^(?:0|[1-9]\d{0,2})$/.test(length)) return false;
  if (isIPv4(address)) return Number(length) <= 32;
  return isIPv6(address) && Number(length) <= 128;
}

/** Violations of the rule for port numbers, 1 to 65535. */
export function portNumberErrors(port: number): string[] {
  return Number.isInteger(port) && port >= 1 && port <= 65_535 ? [] : ['must be between 1 and 65535, inclusive'];
}

/**
 * Loopback, unspecified, link-local and interface-local ranges: they address the machine that uses them, or its local
 * network.
 */
const ownRanges = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 24],
] as const) {
  ownRanges.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [
  ['::', 127],
  ['fe80::', 10],
  ['ff01::', 16],
  ['ff02::', 16],
] as const) {
  ownRanges.addSubnet(network, prefix, 'ipv6');
}

/**
 * True for an address that a server may call on behalf of a client: none that belongs to the machine of the server
 * itself.
 */
export function isProxyableIP(text: string): boolean {
  if (isIPv4(text)) return !ownRanges.check(text, 'ipv4');
  return isIPv6(text) && !ownRanges.check(text, 'ipv6');
}
