import { isIP, isIPv4 } from '@keelson/core';
import type { Machine } from '../machine/host/machine.ts';

/** The configured address of the node is invalid. */
export class NodeAddressError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NodeAddressError';
  }
}

/**
 * Addresses of the node, the main one first, at most one of each family after an explicit choice.
 * @throws NodeAddressError
 */
export function nodeIps(chosen: string | undefined, machine: Pick<Machine, 'addresses'>): readonly string[] {
  if (chosen !== undefined) {
    if (!isIP(chosen)) throw new NodeAddressError(`node IP "${chosen}" is not a valid IP address`);
    if (isLoopback(chosen)) throw new NodeAddressError(`node IP "${chosen}" is a loopback address`);
    if (isMulticast(chosen)) throw new NodeAddressError(`node IP "${chosen}" is a multicast address`);
    if (!machine.addresses.includes(chosen))
      throw new NodeAddressError(`node IP "${chosen}" is not an address of this host`);
    return [chosen];
  }
  const [first] = machine.addresses;
  if (first === undefined) return [];
  const other = machine.addresses.find((address) => isIPv4(address) !== isIPv4(first));
  return other === undefined ? [first] : [first, other];
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

function isMulticast(address: string): boolean {
  if (!isIPv4(address)) return address.toLowerCase().startsWith('ff');
  const first = Number(address.split('.')[0]);
  return first >= 224 && first <= 239;
}
