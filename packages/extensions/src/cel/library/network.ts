import { isIPv4, isIPv6 } from '@keelson/core';
import { Fault } from '../base/errors.ts';
import { byFirst, type Functions, traversal } from '../base/functions.ts';
import * as t from '../base/types.ts';
import { type CelValue, OpaqueValue, ValueList, ValueMap } from '../base/values.ts';

/** The bytes of an address: 4 or 16. */
function addressBytes(text: string): number[] {
  if (isIPv4(text)) return text.split('.').map(Number);
  const [head = '', tail] = text.split('::');
  const groups = (part: string): number[] =>
    part === ''
      ? []
      : part.split(':').flatMap((group) => {
          if (group.includes('.')) return group.split('.').map(Number);
          const value = Number.parseInt(group, 16);
          return [value >> 8, value & 255];
        });
  const start = groups(head);
  const end = tail === undefined ? [] : groups(tail);
  return [...start, ...new Array<number>(16 - start.length - end.length).fill(0), ...end];
}

function addressText(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i] ?? 0) * 256 + (bytes[2 * i + 1] ?? 0));
  let best = { at: -1, length: 1 };
  for (let at = 0; at < 8; at++) {
    let length = 0;
    while (at + length < 8 && groups[at + length] === 0) length++;
    if (length > best.length) best = { at, length };
  }
  const hex = groups.map((group) => group.toString(16));
  if (best.at < 0) return hex.join(':');
  return `${hex.slice(0, best.at).join(':')}::${hex.slice(best.at + best.length).join(':')}`;
}

class Address extends OpaqueValue {
  readonly typeName = 'net.IP';
  readonly bytes: readonly number[];

  constructor(bytes: readonly number[]) {
    super();
    this.bytes = bytes;
  }

  get size(): number {
    return Math.ceil(this.bytes.length);
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof Address && this.toString() === other.toString();
  }

  override toString(): string {
    return addressText(this.bytes);
  }
}

class Network extends OpaqueValue {
  readonly typeName = 'net.CIDR';
  readonly address: Address;
  readonly bits: number;

  constructor(address: Address, bits: number) {
    super();
    this.address = address;
    this.bits = bits;
  }

  get size(): number {
    return Math.ceil(this.bits / 8);
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof Network && this.bits === other.bits && this.address.equals(other.address);
  }

  masked(bits = this.bits): Network {
    const bytes = this.address.bytes.map((byte, i) => {
      const kept = Math.max(0, Math.min(8, bits - 8 * i));
      return byte & (0xff00 >> kept) & 0xff;
    });
    return new Network(new Address(bytes), this.bits);
  }

  contains(address: Address): boolean {
    if (address.bytes.length !== this.address.bytes.length) return false;
    const other = new Network(address, this.bits).masked();
    return other.equals(this.masked());
  }

  override toString(): string {
    return `${this.address.toString()}/${this.bits}`;
  }
}

/** The parse error of an invalid IP address. */
function addressError(text: string): string {
  if (!/^[^:]*\./.test(text)) return 'unable to parse IP';
  for (const part of text.split('.')) {
    if (part === '') return 'IPv4 field must have at least one digit';
    if (/\D/.test(part)) return 'unexpected character';
    if (part.length > 1 && part.startsWith('0')) return 'IPv4 field has octet with leading zero';
    if (Number(part) > 255) return 'IPv4 field has value >255';
  }
  return text.split('.').length < 4 ? 'IPv4 address too short' : 'IPv4 address too long';
}

function parseAddress(text: string): Address | Fault {
  const shown = JSON.stringify(text);
  if (text.includes('%') && isIPv6(text.split('%')[0] ?? '')) {
    return new Fault(`IP address ${shown} with zone value is not allowed`);
  }
  if (!isIPv4(text) && !isIPv6(text)) {
    const why = `ParseAddr(${shown}): ${addressError(text)}`;
    return new Fault(`IP Address ${shown} parse error during conversion from string: ${why}`);
  }
  const bytes = addressBytes(text);
  if (isMapped(bytes)) return new Fault(`IPv4-mapped IPv6 address ${shown} is not allowed`);
  return new Address(bytes);
}

function isMapped(bytes: readonly number[]): boolean {
  return (
    bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  );
}

function parseNetwork(text: string): Network | Fault {
  const shown = JSON.stringify(text);
  const twice = 'network address parse error during conversion from string: ';
  const [address = '', length = ''] = text.split('/', 2);
  if (!text.includes('/')) return new Fault(`${twice}${twice}netip.ParsePrefix(${shown}): no '/'`);
  if (!isIPv4(address) && (!isIPv6(address) || address.includes('%'))) {
    const why = `ParseAddr(${JSON.stringify(address)}): ${addressError(address)}`;
    return new Fault(`${twice}${twice}netip.ParsePrefix(${shown}): ${why}`);
  }
  const bytes = addressBytes(address);
  if (isMapped(bytes)) return new Fault(`${twice}IPv4-mapped IPv6 address ${shown} is not allowed`);
  const bits = /^(?:0|[1-9]\d{0,2})$/.test(length) && text.split('/').length === 2 ? Number(length) : -1;
  if (bits < 0 || bits > bytes.length * 8) {
    const why = bits < 0 ? `bad bits after slash: ${JSON.stringify(length)}` : 'prefix length out of range';
    return new Fault(`${twice}${twice}netip.ParsePrefix(${shown}): ${why}`);
  }
  return new Network(new Address(bytes), bits);
}

const tests: Record<string, (bytes: readonly number[]) => boolean> = {
  isUnspecified: (bytes) => bytes.every((byte) => byte === 0),
  isLoopback,
  isLinkLocalMulticast,
  isLinkLocalUnicast,
  isGlobalUnicast: (bytes) =>
    !bytes.every((byte) => byte === 0) &&
    !(bytes.length === 4 && bytes.every((byte) => byte === 255)) &&
    !isLoopback(bytes) &&
    !(bytes.length === 4 ? ((bytes[0] ?? 0) & 0xf0) === 0xe0 : bytes[0] === 0xff) &&
    !isLinkLocalUnicast(bytes),
};

function isLoopback(bytes: readonly number[]): boolean {
  if (bytes.length === 4) return bytes[0] === 127;
  return bytes.every((byte, i) => byte === (i === 15 ? 1 : 0));
}

function isLinkLocalMulticast([first = 0, second = 0, third, ...rest]: readonly number[]): boolean {
  if (rest.length === 1) return first === 224 && second === 0 && third === 0;
  return first === 0xff && (second & 0x0f) === 2;
}

function isLinkLocalUnicast(bytes: readonly number[]): boolean {
  const [first = 0, second = 0] = bytes;
  return bytes.length === 4 ? first === 169 && second === 254 : first === 0xfe && (second & 0xc0) === 0x80;
}

function withNetwork(text: string, then: (network: Network) => boolean): boolean | Fault {
  const network = parseNetwork(text);
  return network instanceof Fault ? network : then(network);
}

/** Adds the functions of Kubernetes for IP addresses and networks. */
export function addNetwork(fns: Functions): void {
  const { stringType: text, boolType: bool, intType: int } = t;
  const ip = t.opaqueType('net.IP');
  const cidr = t.opaqueType('net.CIDR');
  const parse = { cost: byFirst() };
  fns.global('ip', [text], ip, parseAddress, parse);
  fns.global('isIP', [text], bool, (x: string) => !(parseAddress(x) instanceof Fault), parse);
  const canonical = (x: string): boolean | Fault => {
    const address = parseAddress(x);
    return address instanceof Fault ? address : address.toString() === x;
  };
  fns.global('ip.isCanonical', [text], bool, canonical, { cost: byFirst(2) });
  fns.member('family', [ip], int, (x: Address) => (x.bytes.length === 4 ? 4n : 6n));
  for (const [name, test] of Object.entries(tests)) fns.member(name, [ip], bool, (x: Address) => test(x.bytes));
  fns.global('string', [ip], text, String);
  fns.global('cidr', [text], cidr, parseNetwork, parse);
  fns.global('isCIDR', [text], bool, (x: string) => !(parseNetwork(x) instanceof Fault), parse);
  fns.global('string', [cidr], text, String);
  fns.member('ip', [cidr], ip, (x: Network) => x.address);
  fns.member('prefixLength', [cidr], int, (x: Network) => BigInt(x.bits));
  fns.member('masked', [cidr], cidr, (x: Network) => x.masked());
  const containsText = (x: Network, y: string): boolean | Fault => {
    const address = parseAddress(y);
    return address instanceof Fault ? address : x.contains(address);
  };
  const contains = (x: Network, y: Network): boolean => x.bits <= y.bits && x.contains(y.address);
  const base = ({ size }: Network): number => traversal(2 * size);
  const masked = (x: Network): number => base(x) + traversal(x.size) + 1;
  const more = (y: string): number => traversal(y.length);
  fns.member('containsIP', [cidr, text], bool, containsText, { cost: ([x, y]) => base(x) + more(y) });
  fns.member('containsIP', [cidr, ip], bool, (x: Network, y: Address) => x.contains(y), { cost: ([x]) => base(x) });
  fns.member('containsCIDR', [cidr, text], bool, (x, y) => withNetwork(y, (network) => contains(x, network)), {
    cost: ([x, y]) => masked(x) + more(y),
  });
  fns.member('containsCIDR', [cidr, cidr], bool, contains, { cost: ([x]) => masked(x) });
}

class Url extends OpaqueValue {
  readonly typeName = 'kubernetes.URL';
  readonly text: string;
  readonly url: ParsedUrl;

  constructor(text: string, url: ParsedUrl) {
    super();
    this.text = text;
    this.url = url;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof Url && other.text === this.text;
  }
}

interface ParsedUrl {
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

const absolute = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s;

/** An absolute URL or an absolute path, as Go's `url.ParseRequestURI` reads them. */
export function parseUrl(text: string): ParsedUrl | Fault {
  const fail = (why: string): Fault => new Fault(`parse ${JSON.stringify(text)}: ${why}`);
  if (text === '') return fail('empty url');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\u0000-\u001f\u007f]/.test(text)) return fail('net/url: invalid control character in URL');
  if (text.startsWith(':')) return fail('missing protocol scheme');
  const [, scheme = '', authority, path = '', query = ''] = absolute.exec(text) ?? [];
  if (scheme === '' && !text.startsWith('/')) return fail('invalid URI for request');
  if (scheme !== '' && authority === undefined && !path.startsWith('/')) return fail('invalid URI for request');
  const host = (authority ?? '').replace(/^.*@/, '');
  if (/[ "<>\\^`{|}]/.test(host))
    return fail(`invalid character ${JSON.stringify(host.match(/[ "<>\\^`{|}]/)?.[0])} in host name`);
  const port = /:([^\]]*)$/.exec(host.startsWith('[') ? host.slice(host.indexOf(']')) : host)?.[1];
  if (port !== undefined && !/^\d*$/.test(port)) return fail(`invalid port ${JSON.stringify(`:${port}`)} after host`);
  const badEscape = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(path);
  if (badEscape) return fail(`invalid URL escape ${JSON.stringify(badEscape[0])}`);
  return { scheme: scheme.toLowerCase(), host, path, query };
}

function hostname(host: string): string {
  const end = host.startsWith('[') ? host.indexOf(']') : -1;
  return end > 0 ? host.slice(1, end) : host.replace(/:\d*$/, '');
}

function port(host: string): string {
  return /:(\d*)$/.exec(host.startsWith('[') ? host.slice(host.indexOf(']')) : host)?.[1] ?? '';
}

function escapedPath(path: string): string {
  return path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/%[\]\ud800-\udfff]/gu, (char) => encodeURIComponent(char));
}

function queryValues(query: string): ValueMap {
  const values = new Map<string, CelValue[]>();
  for (const [key, value] of new URLSearchParams(query)) {
    const known = values.get(key);
    if (known) known.push(value);
    else values.set(key, [value]);
  }
  const map = new ValueMap();
  for (const [key, list] of values) map.set(key, new ValueList(list));
  return map;
}

/** Adds the functions of Kubernetes for URLs. */
export function addUrls(fns: Functions): void {
  const { stringType: text, boolType: bool } = t;
  const url = t.structType('kubernetes.URL');
  const parse = (x: string): Url | Fault => {
    const parsed = parseUrl(x);
    if (!(parsed instanceof Fault)) return new Url(x, parsed);
    return new Fault(`URL parse error during conversion from string: ${parsed.message}`);
  };
  fns.global('url', [text], url, parse, { cost: byFirst() });
  fns.global('isURL', [text], bool, (x: string) => !(parseUrl(x) instanceof Fault));
  fns.member('getScheme', [url], text, (x: Url) => x.url.scheme);
  fns.member('getHost', [url], text, (x: Url) => x.url.host);
  fns.member('getHostname', [url], text, (x: Url) => hostname(x.url.host));
  fns.member('getPort', [url], text, (x: Url) => port(x.url.host));
  fns.member('getEscapedPath', [url], text, (x: Url) => escapedPath(x.url.path));
  fns.member('getQuery', [url], t.mapType(text, t.listType(text)), (x: Url) => queryValues(x.url.query));
}
