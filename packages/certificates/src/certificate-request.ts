import { createPublicKey, verify } from 'node:crypto';
import {
  DerError,
  type DerValue,
  derValues,
  encodeDer,
  encodeOid,
  encodeSequence,
  expectDer,
  oidText,
  onlyDer,
  Tag,
} from './der.ts';
import {
  type AlternativeNames,
  ExtensionId,
  encodeAlternativeNames,
  type RequestedNames,
  readAlternativeNames,
  readExtensions,
} from './extensions.ts';
import { encodeSubject, type RequestSubject, readSubject, type Subject } from './names.ts';
import { keyText, newKeys, publicKeyOf, signed } from './signing.ts';

/** A certificate signing request and the private key that it is signed with, both PEM. */
export interface KeyAndRequest {
  readonly key: string;
  readonly request: string;
}

/** Content of a certificate request (PKCS#10, RFC 2986). */
export interface CertificateRequest {
  readonly subject: RequestSubject;
  readonly names: RequestedNames;
  /** Public key: SubjectPublicKeyInfo in DER. */
  readonly publicKey: Buffer;
}

/**
 * Digests of the supported signature algorithms; null for Ed25519, which includes its digest. SHA-1 is not supported.
 */
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
/** The attribute that contains the requested extensions. */
const extensionRequest = '1.2.840.113549.1.9.14';

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

function requestedExtensions(attributes: DerValue | undefined): ReadonlyMap<string, Buffer> {
  const lists: Buffer[] = [];
  const content = attributes === undefined ? Buffer.alloc(0) : expectDer(attributes, attributesTag, 'the attributes');
  for (const attribute of derValues(content)) {
    const [type, values] = derValues(expectDer(attribute, Tag.Sequence, 'an attribute'));
    if (oidText(expectDer(type, Tag.ObjectIdentifier, 'the type of an attribute')) !== extensionRequest) continue;
    lists.push(onlyDer(expectDer(values, Tag.Set, 'the extensions'), Tag.Sequence, 'the extensions'));
  }
  return readExtensions(Buffer.concat(lists));
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
    names: readAlternativeNames(requestedExtensions(attributes).get(ExtensionId.subjectAlternativeName)),
  };
  checkSignature(
    info as DerValue,
    key as DerValue,
    expectDer(algorithm, Tag.Sequence, 'the signature algorithm'),
    expectDer(signature, Tag.BitString, 'the signature'),
  );
  return read;
}

/** Creates a key and its certificate signing request (PKCS#10, RFC 2986) for this subject, and for these names. */
export async function createRequest(subject: Subject, names?: AlternativeNames): Promise<KeyAndRequest> {
  const keys = await newKeys();
  const extensions = names === undefined ? [] : encodeAlternativeNames(names);
  const attributes =
    extensions.length === 0
      ? []
      : [encodeSequence(encodeOid(extensionRequest), encodeDer(Tag.Set, encodeSequence(...extensions)))];
  const version = encodeDer(Tag.Integer, Buffer.from([0]));
  const content = encodeSequence(
    ...[version, encodeSubject(subject), publicKeyOf(keys), encodeDer(attributesTag, ...attributes)],
  );
  return { key: keyText(keys), request: signed('CERTIFICATE REQUEST', content, keys.privateKey) };
}
