import { isIP, isIPv4 } from 'node:net';

/** Longest text that is read as an address, so that the work on client-supplied data is limited. */
const maxLength = 64;

/**
 * The standard form of an address: an IPv4 address without leading zeros, also for an IPv4-mapped IPv6 address, and an
 * IPv6 address as in RFC 5952. Undefined when the text is no address. Leading zeros are accepted and read as decimal
 * numbers, as Kubernetes does, where other software reads octal ones; connections need the standard form.
 */
export function standardAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (text.length > maxLength || text.includes('%')) return undefined;
  const plain = text.includes('.') ? withoutZeros(text) : text;
  if (isIPv4(plain)) return plain;
  if (isIP(plain) === 0) return undefined;
  const canonical = new URL(`http://[${plain}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!mapped) return canonical;
  return mapped
    .slice(1)
    .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
    .join('.');
}

/** Removes leading zeros from the numbers of an IPv4 address or of the IPv4 form at the end of an IPv6 address. */
function withoutZeros(text: string): string {
  const start = text.lastIndexOf(':') + 1;
  const numbers = text.slice(start).split('.');
  return text.slice(0, start) + numbers.map((number) => number.replace(/^0+(?=\d)/, '')).join('.');
}

/** Whether the text is an IPv4 address with leading zeros, or an IPv4-mapped IPv6 address. */
export function isNonStandard(text: string): boolean {
  return isIP(text) === 0 || (!isIPv4(text) && isIPv4(standardAddress(text) ?? ''));
}

/** A range of addresses as it was written, with host bits. */
export interface Cidr {
  /** Standard form of the address. */
  readonly address: string;
  readonly bits: number;
  /** 32 or 128, as the text was written. */
  readonly size: number;
  /** The range without host bits. */
  readonly network: string;
  readonly bytes: readonly number[];
}

/** Reads `address/prefix length`, both with optional leading zeros. Undefined when the text is no range. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/');
  const written = text.slice(0, Math.max(slash, 0));
  const length = text.slice(slash + 1);
  const address = standardAddress(written);
  if (address === undefined || length.length > maxLength || !/^\d+$/.test(length)) return undefined;
  const size = written.includes(':') ? 128 : 32;
  if (Number(length) > size) return undefined;
  // The first 96 bits of an IPv4-mapped IPv6 address are not part of its standard form.
  const bytes = bytesOf(address);
  const bits = Math.max(Number(length) - size + bytes.length * 8, 0);
  const masked = bytes.map((byte, i) => byte & (0xff00 >> Math.min(Math.max(bits - 8 * i, 0), 8)));
  return { address, bits, size, network: `${addressOf(masked)}/${bits}`, bytes };
}

/** Whether `inner` is part of `outer` and smaller. */
export function isStrictSubset(inner: Cidr, outer: Cidr): boolean {
  if (inner.bytes.length !== outer.bytes.length || inner.bits <= outer.bits) return false;
  return parseCidr(`${inner.address}/${outer.bits}`)?.network === outer.network;
}

function bytesOf(address: string): number[] {
  if (isIPv4(address)) return address.split('.').map(Number);
  const [head = '', tail] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const first = head === '' ? [] : head;
  const last = tail ?? [];
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - first.length - last.length }, () => '0');
  return [...first, ...zeros, ...last].flatMap((group) => {
    const number = Number.parseInt(group, 16);
    return [number >> 8, number & 255];
  });
}

function addressOf(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
