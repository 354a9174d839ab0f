import { isIP } from '@keelson/core';
import { isJsonObject } from '@keelson/core/internal';
import type { JsonObject } from './network-list.ts';

/** Addresses that a result assigns to the sandbox, without prefix length, in the order of the result. */
export function ipsOf(result: JsonObject): string[] {
  const { ips, ip4, ip6 } = result;
  // Results before version 0.3.0 have one address of each family.
  const entries = Array.isArray(ips)
    ? ips.filter((entry) => isOfSandbox(entry, result['interfaces']))
    : [ip4, ip6].map(oldAddress);
  return entries
    .map((entry) =>
      isJsonObject(entry) && typeof entry['address'] === 'string' ? (entry['address'].split('/')[0] ?? '') : '',
    )
    .filter(isIP);
}

function oldAddress(entry: unknown): JsonObject {
  return { address: isJsonObject(entry) ? entry['ip'] : undefined };
}

/** Whether an address is that of an interface in the sandbox. Interfaces without a sandbox are on the machine. */
function isOfSandbox(entry: unknown, interfaces: unknown): boolean {
  if (!isJsonObject(entry) || typeof entry['interface'] !== 'number' || !Array.isArray(interfaces)) return true;
  const owner: unknown = interfaces[entry['interface']];
  return !isJsonObject(owner) || (typeof owner['sandbox'] === 'string' && owner['sandbox'] !== '');
}

/** Names of the interfaces of a result on the machine. */
export function machineInterfacesOf({ interfaces }: JsonObject): string[] {
  if (!Array.isArray(interfaces)) return [];
  return interfaces
    .filter((entry) => isJsonObject(entry) && (entry['sandbox'] === undefined || entry['sandbox'] === ''))
    .map((entry: JsonObject) => entry['name'])
    .filter((name) => typeof name === 'string');
}

/** The first gateway of a result. */
export function gatewayOf({ ips }: JsonObject): string | undefined {
  const gateways = Array.isArray(ips)
    ? ips.map((entry: unknown) => (isJsonObject(entry) ? entry['gateway'] : undefined))
    : [];
  return gateways.find((gateway) => typeof gateway === 'string');
}

/** Hardware address of an interface on the machine. */
export function macOf({ interfaces }: JsonObject, name: string): string | undefined {
  const found = Array.isArray(interfaces)
    ? interfaces.find((entry) => isJsonObject(entry) && entry['name'] === name)
    : undefined;
  const mac: unknown = isJsonObject(found) ? found['mac'] : undefined;
  return typeof mac === 'string' ? mac : undefined;
}
