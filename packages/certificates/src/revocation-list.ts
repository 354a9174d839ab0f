import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type KeyPair, readCertificate, type Validity } from './certificate.ts';
import {
  type DerValue,
  derValues,
  encodeDer,
  encodeSequence,
  encodeTime,
  expectDer,
  onlyDer,
  Tag,
  timeOf,
} from './der.ts';
import { comparableName } from './names.ts';
import { algorithmOf, signed } from './signing.ts';

/** Revoked certificates by issuer. */
export interface RevocationList {
  /** True when the issuer of the certificate (DER) has revoked it. */
  revokes(certificate: Buffer): boolean;
  /** The earliest time, in epoch milliseconds, when one of the lists should have been replaced; undefined: never. */
  readonly nextUpdateMs: number | undefined;
}

interface ParsedList {
  readonly issuer: string;
  readonly serials: readonly string[];
  readonly nextUpdate: Date | undefined;
}

const isTime = (value: DerValue | undefined): boolean =>
  value?.tag === Tag.UtcTime || value?.tag === Tag.GeneralizedTime;

/** Serial numbers as hexadecimal text. Leading zeros, which the lists of some authorities contain, are removed. */
const serialText = (content: Buffer): string => content.toString('hex').replace(/^0+(?=.)/, '');

function encodedLists(content: Buffer): Buffer[] {
  const text = content.toString('latin1');
  if (!text.includes('-----BEGIN')) return [content];
  const blocks = [...text.matchAll(/-----BEGIN (X509 )?CRL-----(.*?)-----END \1CRL-----/gs)];
  if (blocks.length === 0) throw new Error('the file contains no revocation list in PEM');
  return blocks.map(([, , encoded = '']) => Buffer.from(encoded, 'base64'));
}

function parseList(encoded: Buffer): ParsedList {
  const [content, algorithm, signature] = derValues(onlyDer(encoded, Tag.Sequence, 'the list'));
  expectDer(algorithm, Tag.Sequence, 'the signature algorithm');
  expectDer(signature, Tag.BitString, 'the signature');
  const parts = derValues(expectDer(content, Tag.Sequence, 'the content of the list'));
  // Lists of version 1 do not contain the version.
  if (parts[0]?.tag === Tag.Integer) parts.shift();
  const [inner, issuer, thisUpdate, ...rest] = parts;
  expectDer(inner, Tag.Sequence, 'the signature algorithm');
  timeOf(thisUpdate);
  const nextUpdate = isTime(rest[0]) ? timeOf(rest.shift()) : undefined;
  const entries = rest[0]?.tag === Tag.Sequence ? derValues(rest[0].content) : [];
  return {
    issuer: comparableName(expectDer(issuer, Tag.Sequence, 'the issuer')),
    serials: entries.map((entry) => {
      const [serial, revoked] = derValues(expectDer(entry, Tag.Sequence, 'a revoked certificate'));
      timeOf(revoked);
      return serialText(expectDer(serial, Tag.Integer, 'a serial number'));
    }),
    nextUpdate,
  };
}

/**
 * Parses revocation lists (RFC 5280), PEM or DER. The file is trusted as the files of authorities are: signatures of
 * lists are not verified.
 *
 * @throws Error for content that is not a list
 */
export function parseRevocationLists(content: Buffer): RevocationList {
  const revoked = new Map<string, Set<string>>();
  let nextUpdateMs: number | undefined;
  for (const encoded of encodedLists(content)) {
    let list: ParsedList;
    try {
      list = parseList(encoded);
    } catch (cause) {
      throw new Error('the file is not a certificate revocation list in PEM or DER', { cause });
    }
    const serials = revoked.get(list.issuer) ?? new Set();
    for (const serial of list.serials) serials.add(serial);
    revoked.set(list.issuer, serials);
    const until = list.nextUpdate?.getTime();
    if (until !== undefined) nextUpdateMs = Math.min(until, nextUpdateMs ?? until);
  }
  return {
    nextUpdateMs,
    revokes(certificate) {
      const { issuer, serialNumber } = readCertificate(certificate);
      return revoked.get(comparableName(issuer))?.has(serialText(serialNumber)) === true;
    },
  };
}

/** Signs a list of revoked certificates, given in PEM. @returns PEM */
export function createRevocationList(
  authority: KeyPair,
  revoked: readonly string[],
  { notBefore, notAfter }: Validity,
): string {
  const key = createPrivateKey(authority.key);
  const parts = (certificate: string) => readCertificate(new X509Certificate(certificate).raw);
  const entries = revoked.map((certificate) =>
    encodeSequence(encodeDer(Tag.Integer, parts(certificate).serialNumber), encodeTime(notBefore)),
  );
  // The version number 1 stands for version 2.
  const version = encodeDer(Tag.Integer, Buffer.from([1]));
  const content = encodeSequence(
    ...[version, algorithmOf(key), parts(authority.certificate).subject],
    ...[encodeTime(notBefore), encodeTime(notAfter)],
    // An empty list is omitted: RFC 5280, 5.1.2.6.
    ...(entries.length === 0 ? [] : [encodeSequence(...entries)]),
  );
  return signed('X509 CRL', content, key);
}
