import { DerError, derValues, expectDer, oidText, onlyDer, Tag } from './der.ts';

/** Requested subject alternative names. */
export interface AlternativeNames {
  readonly dns: readonly string[];
  /** IP addresses in text form. */
  readonly ips: readonly string[];
  readonly emails: readonly string[];
  readonly uris: readonly string[];
  /** Number of names of other types. */
  readonly others: number;
}

const extensionRequest = '1.2.840.113549.1.9.14';
const subjectAlternativeName = '2.5.29.17';
/** Context-specific tags of GeneralName. */
const NameTag = { email: 0x81, dns: 0x82, uri: 0x86, ip: 0x87 } as const;

function ipText(octets: Buffer): string {
  if (octets.length === 4) return octets.join('.');
  if (octets.length !== 16) throw new DerError('invalid length of an IP address');
  return Array.from({ length: 8 }, (_, i) => octets.readUInt16BE(i * 2).toString(16)).join(':');
}

/** The requested extensions: content by object identifier. */
function requestedExtensions(attributes: Buffer): Map<string, Buffer> {
  const extensions = new Map<string, Buffer>();
  for (const attribute of derValues(attributes)) {
    const [type, values] = derValues(expectDer(attribute, Tag.Sequence, 'an attribute'));
    if (oidText(expectDer(type, Tag.ObjectIdentifier, 'the type of an attribute')) !== extensionRequest) continue;
    const list = onlyDer(expectDer(values, Tag.Set, 'the extensions'), Tag.Sequence, 'the extensions');
    for (const extension of derValues(list)) {
      const parts = derValues(expectDer(extension, Tag.Sequence, 'an extension'));
      const oid = oidText(expectDer(parts[0], Tag.ObjectIdentifier, 'the type of an extension'));
      if (extensions.has(oid)) throw new DerError('duplicate extension');
      extensions.set(oid, expectDer(parts.at(-1), Tag.OctetString, 'the content of an extension'));
    }
  }
  return extensions;
}

/** Reads the alternative names of the attributes of a request. @throws DerError */
export function readAlternativeNames(attributes: Buffer): AlternativeNames {
  const found = { dns: [] as string[], ips: [] as string[], emails: [] as string[], uris: [] as string[], others: 0 };
  const content = requestedExtensions(attributes).get(subjectAlternativeName);
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
