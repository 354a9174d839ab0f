import { randomInt } from 'node:crypto';
import { BlockList, SocketAddress } from 'node:net';
import { isIP, isIPv6 } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { standardAddress } from '@keelson/kinds';

/** The options about addresses of services, with the names of kube-apiserver. */
export interface ServiceServerOptions {
  /**
   * Network of cluster addresses in CIDR notation; with a comma a second one of the other family. Undefined:
   * {@link defaultClusterIpRange}.
   */
  readonly serviceClusterIpRange?: string;
  /** First and last node port. */
  readonly serviceNodePortRange: string;
}

/**
 * Addresses of the loopback interface: every process of a Linux machine can listen on them without privileges, so that
 * pods with the network of their node reach services.
 */
export const defaultClusterIpRange = '127.96.0.0/16';
export const defaultNodePortRange = '30000-32767';

/** The address of the DNS server for pods: the tenth of the range, as in most clusters. */
export function clusterDnsAddress(serviceClusterIpRange = defaultClusterIpRange): string {
  const [first = defaultClusterIpRange] = serviceClusterIpRange.split(',');
  return new AddressRange(first, '--service-cluster-ip-range').at(10);
}

export type IpFamily = 'IPv4' | 'IPv6';

export function familyOf(address: string): IpFamily {
  return isIPv6(address) ? 'IPv6' : 'IPv4';
}

/** Numbers from which values are allocated: addresses by their offset in the network, or ports. */
export interface NumberRange {
  /** Smallest and largest number that is allocated. */
  readonly first: number;
  readonly last: number;
}

/** Of larger networks only the first addresses are allocated unless a service requests one; these can be listed. */
const listedHostBits = 20;

/**
 * A network from which cluster addresses are allocated. As in Kubernetes its first address, and the last one of an IPv4
 * network, are not allocated.
 */
export class AddressRange implements NumberRange {
  readonly text: string;
  readonly family: IpFamily;
  readonly first = 1;
  readonly last: number;
  readonly #base: bigint;
  /** The last address that may be requested. */
  readonly #end: bigint;
  readonly #network = new BlockList();

  /** @throws UsageError for a text that is not a network in CIDR notation, or one that is too small */
  constructor(text: string, option: string) {
    const [address = '', bits = ''] = text.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    const width = family === 'ipv6' ? 128 : 32;
    const prefix = Number(bits);
    if (!isIP(address) || !/^\d+$/.test(bits) || prefix > width)
      throw new UsageError(`${option}: ${text} is not a network in CIDR notation, for example 127.96.0.0/16`);
    const hostBits = width - prefix;
    if (hostBits < 2) throw new UsageError(`${option}: ${text} must have a prefix of at most /${width - 2}`);
    const mask = (1n << BigInt(hostBits)) - 1n;
    this.family = family === 'ipv6' ? 'IPv6' : 'IPv4';
    this.#base = numberOf(address) & ~mask;
    this.#end = this.#base + mask - (family === 'ipv6' ? 0n : 1n);
    this.last = hostBits > listedHostBits ? 2 ** listedHostBits - 1 : Number(this.#end - this.#base);
    this.text = `${addressText(this.#base, this.family)}/${prefix}`;
    this.#network.addSubnet(addressText(this.#base, this.family), prefix, family);
  }

  /** The address with this offset. */
  at(offset: number): string {
    return addressText(this.#base + BigInt(offset), this.family);
  }

  /** Whether the address is in the network and may be allocated. */
  has(address: string): boolean {
    if (!isIP(address) || !this.#network.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return false;
    const value = numberOf(address);
    return value > this.#base && value <= this.#end;
  }
}

/** Parses `30000-32767`. @throws UsageError */
export function parsePortRange(text: string, option: string): NumberRange {
  const [, low, high] = /^(\d+)-(\d+)$/.exec(text) ?? [];
  const [first, last] = [Number(low), Number(high)];
  if (low === undefined || high === undefined || first < 1 || last > 65_535 || first > last)
    throw new UsageError(`${option}: ${text} is not a range of ports, for example 30000-32767`);
  return { first, last };
}

/** The usual text of an address, by which it is compared. */
export function canonicalAddress(address: string): string {
  const standard = standardAddress(address);
  return standard === undefined ? address : addressText(numberOf(standard), familyOf(standard));
}

function numberOf(address: string): bigint {
  if (!isIPv6(address)) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n);
  // The URL parser writes the last 32 bits of an IPv6 address in hexadecimal.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = text.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array.from({ length: zeros }, () => '0'), ...groups(tail ?? '')];
  return all.reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
}

function addressText(value: bigint, family: IpFamily): string {
  if (family === 'IPv4') return [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 255n)).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

/** The part at the start of a range that is allocated last, so that it stays free for requested values. */
function reservedSize({ first, last }: NumberRange): number {
  const size = last - first + 1;
  // As kube-apiserver: a sixteenth, at least 16 and at most 256; none in a range that is too small for it.
  return size < 32 ? 0 : Math.min(Math.max(16, Math.floor(size / 16)), 256);
}

/** A random number of the range, outside of the part that stays free for requested values. */
export function randomNumber(range: NumberRange): number {
  return randomInt(range.first + reservedSize(range), range.last + 1);
}

/** All numbers of the range, in the order in which they are tried after the random ones were in use. */
export function* numbersOf(range: NumberRange): Generator<number> {
  const dynamic = range.first + reservedSize(range);
  for (let i = dynamic; i <= range.last; i++) yield i;
  for (let i = range.first; i < dynamic; i++) yield i;
}
