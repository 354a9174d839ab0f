import 'reflect-metadata';
import { PemConverter, X509Certificate, X509Crl } from '@peculiar/x509';

/** Revoked certificates by issuer. */
export interface RevocationList {
  /** True when the issuer of the certificate (DER) has revoked it. */
  revokes(certificate: Buffer): boolean;
  /** The earliest time, in epoch milliseconds, when one of the lists should have been replaced; undefined: never. */
  readonly nextUpdateMs: number | undefined;
}

const serial = (hex: string): string => hex.toLowerCase().replace(/^0+(?=.)/, '');

function encodedLists(content: Buffer): ArrayBuffer[] {
  const text = content.toString('latin1');
  if (!text.includes('-----BEGIN')) return [new Uint8Array(content).buffer];
  const blocks = text.match(/-----BEGIN (X509 )?CRL-----.*?-----END \1CRL-----/gs) ?? [];
  if (blocks.length === 0) throw new Error('the file contains no revocation list in PEM');
  return blocks.map((block) => PemConverter.decodeFirst(block));
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
    let list: X509Crl;
    try {
      list = new X509Crl(encoded);
    } catch {
      throw new Error('the file is not a certificate revocation list in PEM or DER');
    }
    const serials = revoked.get(list.issuer) ?? new Set();
    for (const { serialNumber } of list.entries) serials.add(serial(serialNumber));
    revoked.set(list.issuer, serials);
    const until = list.nextUpdate?.getTime();
    if (until !== undefined) nextUpdateMs = Math.min(until, nextUpdateMs ?? until);
  }
  return {
    nextUpdateMs,
    revokes(raw) {
      const { issuer, serialNumber } = new X509Certificate(raw);
      return revoked.get(issuer)?.has(serial(serialNumber)) === true;
    },
  };
}
