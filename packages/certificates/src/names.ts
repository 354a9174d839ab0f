import { DerError, derValues, encodeDer, encodeOid, encodeSequence, expectDer, oidText, Tag } from './der.ts';

/** The subject of a certificate or request that is created. */
export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

/** Requested subject of a certificate. */
export interface RequestSubject {
  /** The common name; empty when the subject has none. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Object identifiers of the attributes other than common name and organization. */
  readonly others: readonly string[];
}

const commonName = '2.5.4.3';
const organization = '2.5.4.10';

/** Decoders of text types by tag octet. */
const decoders: Readonly<Record<number, (content: Buffer) => string>> = {
  [0x0c]: (content) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content),
  [0x13]: (content) => content.toString('latin1'),
  [0x14]: (content) => content.toString('latin1'),
  [0x16]: (content) => content.toString('latin1'),
};

function textOf(tag: number, content: Buffer): string {
  const decode = decoders[tag];
  if (decode === undefined) throw new DerError('an attribute of the subject is not a text');
  try {
    return decode(content);
  } catch {
    throw new DerError('an attribute of the subject is not valid UTF-8');
  }
}

/** Reads the content of a requested subject. @throws DerError */
export function readSubject(content: Buffer): RequestSubject {
  const organizations: string[] = [];
  const others: string[] = [];
  const names: string[] = [];
  for (const set of derValues(content)) {
    for (const pair of derValues(expectDer(set, Tag.Set, 'a part of the subject'))) {
      const [type, value] = derValues(expectDer(pair, Tag.Sequence, 'an attribute of the subject'));
      const oid = oidText(expectDer(type, Tag.ObjectIdentifier, 'the type of an attribute'));
      if (value === undefined) throw new DerError('an attribute of the subject has no value');
      if (oid === commonName) names.push(textOf(value.tag, value.content));
      else if (oid === organization) organizations.push(textOf(value.tag, value.content));
      else others.push(oid);
    }
  }
  if (names.length > 1) throw new DerError('the subject has more than one common name');
  return { commonName: names[0] ?? '', organizations, others };
}

function encodeAttribute(type: string, value: string): Buffer {
  // PrintableString is used for every text without characters such as * and @, which it excludes: other implementations
  // do the same, and some compare names by octets.
  const tag = /^[A-Za-z0-9 '()+,./:=?-]*$/.test(value) ? Tag.PrintableString : Tag.Utf8String;
  return encodeDer(Tag.Set, encodeSequence(encodeOid(type), encodeDer(tag, Buffer.from(value))));
}

/** Encodes a subject. Organizations precede the common name, as in the requests of Kubernetes nodes. */
export function encodeSubject({ organizations = [], commonName: name }: Subject): Buffer {
  return encodeSequence(
    ...organizations.map((value) => encodeAttribute(organization, value)),
    encodeAttribute(commonName, name),
  );
}

/** A text that is equal for distinguished names with equal attributes, whichever types of text they have. */
export function comparableName(content: Buffer): string {
  const parts = derValues(content).map((set) =>
    derValues(expectDer(set, Tag.Set, 'a part of the name'))
      .map((pair) => {
        const [type, value] = derValues(expectDer(pair, Tag.Sequence, 'an attribute of the name'));
        const oid = oidText(expectDer(type, Tag.ObjectIdentifier, 'the type of an attribute'));
        if (value === undefined) throw new DerError('an attribute of the name has no value');
        const isText = decoders[value.tag] !== undefined;
        return [oid, isText ? textOf(value.tag, value.content) : value.whole.toString('hex')];
      })
      .sort(),
  );
  return JSON.stringify(parts);
}
