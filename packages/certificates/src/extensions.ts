import { isIPv4, isIPv6 } from 'node:net';
import {
  DerError,
  derValues,
  encodeBits,
  encodeDer,
  encodeOid,
  encodeSequence,
  expectDer,
  oidText,
  onlyDer,
  Tag,
} from './der.ts';

/** Names of a server. */
export interface AlternativeNames {
  readonly dns: readonly string[];
  /** IP addresses in text form. */
  readonly ips: readonly string[];
}

/** Alternative names of a request, which may be of every type. */
export interface RequestedNames extends AlternativeNames {
  readonly emails: readonly string[];
  readonly uris: readonly string[];
  /** Number of alternative names of types other than DNS name, IP address, email address and URI. */
  readonly others: number;
}

/** Object identifiers of extensions (RFC 5280, 4.2.1). */
export const ExtensionId = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAlternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;

/** Context-specific tags of GeneralName. */
const NameTag = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;

/** Bits of the KeyUsage extension. The first usage has the most significant bit. */
export const KeyUsage = { digitalSignature: 0x80, keyEncipherment: 0x20, keyCertSign: 0x04, cRLSign: 0x02 } as const;

const usageFlags: Readonly<Record<string, number>> = {
  'digital signature': KeyUsage.digitalSignature,
  'key encipherment': KeyUsage.keyEncipherment,
};

const extendedUsages: Readonly<Record<string, string>> = {
  'server auth': '1.3.6.1.5.5.7.3.1',
  'client auth': '1.3.6.1.5.5.7.3.2',
};

function ipText(octets: Buffer): string {
  if (octets.length === 4) return octets.join('.');
  if (octets.length !== 16) throw new DerError('invalid length of an IP address');
  return Array.from({ length: 8 }, (_, i) => octets.readUInt16BE(i * 2).toString(16)).join(':');
}

function ipOctets(text: string): Buffer {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  if (!isIPv6(text) || text.includes('%')) throw new TypeError(`${JSON.stringify(text)} is not an IP address`);
  // URLs have the hexadecimal form, with at most one '::'.
  const [head = '', tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::');
  const groups = (part: string | undefined) => (part ? part.split(':').map((group) => Number.parseInt(group, 16)) : []);
  const [first, last] = [groups(head), groups(tail)];
  const octets = Buffer.alloc(16);
  for (const [i, group] of first.entries()) octets.writeUInt16BE(group, i * 2);
  for (const [i, group] of last.entries()) octets.writeUInt16BE(group, 16 - (last.length - i) * 2);
  return octets;
}

/** Reads a list of extensions: the content of each by its identifier. @throws DerError */
export function readExtensions(list: Buffer): Map<string, Buffer> {
  const extensions = new Map<string, Buffer>();
  for (const extension of derValues(list)) {
    const parts = derValues(expectDer(extension, Tag.Sequence, 'an extension'));
    const oid = oidText(expectDer(parts[0], Tag.ObjectIdentifier, 'the type of an extension'));
    if (extensions.has(oid)) throw new DerError('duplicate extension');
    extensions.set(oid, expectDer(parts.at(-1), Tag.OctetString, 'the content of an extension'));
  }
  return extensions;
}

/** Reads the content of the extension for alternative names; undefined: none. @throws DerError */
export function readAlternativeNames(content: Buffer | undefined): RequestedNames {
  const found = { dns: [] as string[], ips: [] as string[], emails: [] as string[], uris: [] as string[], others: 0 };
  if (content === undefined) return found;
  for (const { tag, content: name } of derValues(onlyDer(content, Tag.Sequence, 'the alternative names'))) {
    if (tag === NameTag.dns) found.dns.push(name.toString('latin1'));
    else if (tag === NameTag.ip) found.ips.push(ipText(name));
    else if (tag === NameTag.email) found.emails.push(name.toString('latin1'));
    else if (tag === NameTag.uri) found.uris.push(name.toString('latin1'));
    else found.others += 1;
  }
  return found;
}

function encodeExtension(oid: string, content: Buffer, { critical = false } = {}): Buffer {
  const flag = critical ? [encodeDer(Tag.Boolean, Buffer.from([0xff]))] : [];
  return encodeSequence(encodeOid(oid), ...flag, encodeDer(Tag.OctetString, content));
}

/**
 * Encodes whether a certificate is that of an authority. Authorities that are created here sign no other authorities.
 */
export function encodeConstraints({ authority }: { readonly authority: boolean }): Buffer {
  const noFurther = encodeDer(Tag.Integer, Buffer.from([0]));
  const content = authority ? [encodeDer(Tag.Boolean, Buffer.from([0xff])), noFurther] : [];
  return encodeExtension(ExtensionId.basicConstraints, encodeSequence(...content), { critical: true });
}

/** Encodes a sum of {@link KeyUsage}, which is not 0. */
export function encodeKeyUsage(flags: number): Buffer {
  const unused = 31 - Math.clz32(flags & -flags);
  return encodeExtension(ExtensionId.keyUsage, encodeBits(Buffer.from([flags]), unused), { critical: true });
}

/** The extensions for usages by their names in the API; unknown ones are omitted. */
export function encodeUsages(usages: readonly string[]): Buffer[] {
  const flags = usages.reduce((sum, usage) => sum | (usageFlags[usage] ?? 0), 0);
  const extended = usages.flatMap((usage) => extendedUsages[usage] ?? []).map(encodeOid);
  return [
    ...(flags === 0 ? [] : [encodeKeyUsage(flags)]),
    ...(extended.length === 0 ? [] : [encodeExtension(ExtensionId.extendedKeyUsage, encodeSequence(...extended))]),
  ];
}

/** The extension for alternative names, if there are any. */
export function encodeAlternativeNames({ dns, ips }: AlternativeNames): Buffer[] {
  const names = [
    ...dns.map((name) => encodeDer(NameTag.dns, Buffer.from(name, 'latin1'))),
    ...ips.map((ip) => encodeDer(NameTag.ip, ipOctets(ip))),
  ];
  return names.length === 0 ? [] : [encodeExtension(ExtensionId.subjectAlternativeName, encodeSequence(...names))];
}

export function encodeSubjectKeyIdentifier(identifier: Buffer): Buffer {
  return encodeExtension(ExtensionId.subjectKeyIdentifier, encodeDer(Tag.OctetString, identifier));
}

export function encodeAuthorityKeyIdentifier(identifier: Buffer): Buffer {
  // [0] keyIdentifier
  return encodeExtension(ExtensionId.authorityKeyIdentifier, encodeSequence(encodeDer(0x80, identifier)));
}
