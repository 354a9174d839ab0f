import { lookup } from 'node:dns/promises';
import type { Clock } from '@keelson/core';
import type { Machine } from '../machine/host/machine.ts';

/** Finds the addresses of a name. */
export type FindAddresses = (name: string) => Promise<readonly string[]>;

const systemAddresses: FindAddresses = async (name) =>
  (await lookup(name, { all: true })).map(({ address }) => address);

/** A resolver that does not answer is not worth a longer wait: the address of the default route is as good. */
const waitMs = 2_000;

/**
 * The machine with the address that its node's name stands for, or is, as the first; the machine as it is when that is
 * no address of it, such as a loopback address.
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
      // Names that nobody knows are usual for nodes.
      .catch(() => [])
      .then((addresses) => {
        cancel();
        resolve(addresses);
      });
  });
}
