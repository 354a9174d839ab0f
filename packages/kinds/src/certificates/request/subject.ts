import { DerError, derValues, expectDer, oidText, Tag } from './der.ts';

/** Requested subject of a certificate. */
export interface RequestSubject {
  /** Empty without a common name. */
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Object identifiers of all other attributes. */
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

/** Reads the content of a distinguished name. @throws DerError */
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
