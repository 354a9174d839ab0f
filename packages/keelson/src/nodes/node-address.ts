import { lookup } from 'node:dns/promises';
import { isIP, isProxyableIP } from '@keelson/core';
import type { coreV1 } from '@keelson/kinds';

/** Resolves a name to its addresses; rejects when it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** Resolves by the system's resolver. */
export const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** Order of preference of address types, as in kube-apiserver. */
const preference = ['Hostname', 'InternalDNS', 'InternalIP', 'ExternalDNS', 'ExternalIP'] as const;

/** The address by which a node is reached. */
export interface ReachableAddress {
  readonly ip: string;
  /** The resolved name; absent when the node reported the address itself. */
  readonly name?: string;
}

/** The address, or the reasons why there is none. */
export type AddressChoice = { readonly found: ReachableAddress } | { readonly tried: readonly string[] };

/**
 * Chooses the first usable address. Names that do not resolve are skipped, because the names of many nodes are not in
 * any name service.
 *
 * @param proxied true: skip addresses of this machine
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
