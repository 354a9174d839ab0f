import { networkInterfaces } from 'node:os';

/**
 * Detects the address of the node: the first address of an interface other than loopback, IPv4 before IPv6 and never a
 * link-local IPv6 address; 127.0.0.1 when there is none.
 */
export function findNodeIp(): string {
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter((address) => !address.internal);
  const found =
    addresses.find((address) => address.family === 'IPv4') ??
    addresses.find((address) => !address.address.startsWith('fe80'));
  return found?.address ?? '127.0.0.1';
}
