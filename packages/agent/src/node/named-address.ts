import { lookup } from 'node:dns/promises';
import type { Clock } from '@keelson/core/runtime';
import type { Machine } from '../machine/host/machine.ts';

/** Resolves a name to addresses. */
export type FindAddresses = (name: string) => Promise<readonly string[]>;

const systemAddresses: FindAddresses = async (name) =>
  (await lookup(name, { all: true })).map(({ address }) => address);

/** Limit for the resolver; without an answer the address of the default route is used. */
const waitMs = 2_000;

/**
 * The machine with the address to which the node's name resolves in the first place; unchanged when that is not one of
 * its addresses, or is a loopback address.
 */
export async function withNamedAddress(
  machine: Machine,
  nodeName: string,
  clock: Clock,
  find: FindAddresses = systemAddresses,
): Promise<Machine> {
  const found = await inTime(find(nodeName), clock);
  const named = found.find((address) => machine.addresses.includes(address));
  if (named === undefined) return machine;
  return { ...machine, addresses: [named, ...machine.addresses.filter((address) => address !== named)] };
}

async function inTime(finding: Promise<readonly string[]>, clock: Clock): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const cancel = clock.after(waitMs, () => resolve([]));
    void finding
      // Names of nodes often do not resolve.
      .catch(() => [])
      .then((addresses) => {
        cancel();
        resolve(addresses);
      });
  });
}
