import { createPublicKey, verify } from 'node:crypto';
import { type AlternativeNames, readAlternativeNames } from './alternative-names.ts';
import { DerError, type DerValue, derValues, expectDer, oidText, onlyDer, Tag } from './der.ts';
import { type RequestSubject, readSubject } from './subject.ts';

/** Content of a certificate request (PKCS#10, RFC 2986). */
export interface CertificateRequest {
  readonly subject: RequestSubject;
  readonly names: AlternativeNames;
  /** Public key: SubjectPublicKeyInfo in DER. */
  readonly publicKey: Buffer;
}

/** Digests of the supported signature algorithms; null: part of the algorithm. SHA-1 is not supported. */
const digests: Readonly<Record<string, string | null>> = {
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.3.101.112': null,
};

/** Tag octet of the attributes of a request. */
const attributesTag = 0xa0;

const begin = '-----BEGIN ';
const label = 'CERTIFICATE REQUEST-----';

/** The content of the first PEM block. */
function pemContent(text: string): Buffer {
  const start = text.indexOf(begin) + begin.length;
  const end = text.indexOf(`-----END ${label}`, start);
  if (start < begin.length || !text.startsWith(label, start) || end < 0) {
    throw new DerError('PEM block type must be CERTIFICATE REQUEST');
  }
  return Buffer.from(text.slice(start + label.length, end), 'base64');
}

function checkSignature(info: DerValue, key: DerValue, algorithm: Buffer, signature: Buffer): void {
  const oid = oidText(expectDer(derValues(algorithm)[0], Tag.ObjectIdentifier, 'the signature algorithm'));
  const digest = digests[oid];
  if (digest === undefined) throw new DerError(`the signature algorithm ${oid} is not supported`);
  // The first octet of a bit string is the number of unused bits.
  if (signature[0] !== 0) throw new DerError('the signature has unused bits');
  let good: boolean;
  try {
    const publicKey = createPublicKey({ key: key.whole, format: 'der', type: 'spki' });
    good = verify(digest, info.whole, publicKey, signature.subarray(1));
  } catch {
    throw new DerError('invalid public key');
  }
  if (!good) throw new DerError('the signature does not match the public key of the request');
}

/**
 * Reads a PEM certificate request and checks that it is signed with its own key.
 *
 * @throws DerError for an invalid request
 */
export function readCertificateRequest(pem: string): CertificateRequest {
  const [info, algorithm, signature] = derValues(onlyDer(pemContent(pem), Tag.Sequence, 'the certificate request'));
  const [version, subject, key, attributes] = derValues(expectDer(info, Tag.Sequence, 'the request information'));
  expectDer(version, Tag.Integer, 'the version');
  expectDer(key, Tag.Sequence, 'the public key');
  const read = {
    publicKey: (key as DerValue).whole,
    subject: readSubject(expectDer(subject, Tag.Sequence, 'the subject')),
    names: readAlternativeNames(
      attributes === undefined ? Buffer.alloc(0) : expectDer(attributes, attributesTag, 'the attributes'),
    ),
  };
  checkSignature(
    info as DerValue,
    key as DerValue,
    expectDer(algorithm, Tag.Sequence, 'the signature algorithm'),
    expectDer(signature, Tag.BitString, 'the signature'),
  );
  return read;
}
