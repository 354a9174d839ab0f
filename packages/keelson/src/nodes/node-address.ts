import { lookup } from 'node:dns/promises';
import { isIP, isProxyableIP } from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';

/** The addresses of a name; rejects when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** By the system, as every program on the machine sees names. */
export const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** Which address of a node is taken first, as reference servers have it. */
const preference = ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP'] as const;

/** An address by which a node is reached. */
export interface ReachableAddress {
  readonly ip: string;
  /** The name that led to it; absent when the node said the address itself. */
  readonly name?: string;
}

/** What was tried, or the address. */
export type AddressChoice = { readonly found: ReachableAddress } | { readonly tried: readonly string[] };

/**
 * The first address that can be used. Names that do not resolve are passed over: most nodes are named by nobody but
 * themselves.
 *
 * @param proxied true: addresses that mean this machine are passed over too
 */
export async function chooseAddress(
  addresses: readonly coreV1.NodeAddress[],
  { proxied, resolve }: { readonly proxied: boolean; readonly resolve: Resolve },
): Promise<AddressChoice> {
  const tried: string[] = [];
  for (const type of preference) {
    for (const { address } of addresses.filter((one) => one.type === type)) {
      const literal = isIP(address);
      const ips = literal ? [address] : await resolve(address).catch(() => []);
      if (ips.length === 0) tried.push(`${address} does not resolve`);
      const ip = ips.find((one) => !proxied || isProxyableIP(one));
      if (ip !== undefined) return { found: literal ? { ip } : { ip, name: address } };
      if (ips.length > 0) tried.push(`${address} means this machine`);
    }
  }
  return { tried };
}
