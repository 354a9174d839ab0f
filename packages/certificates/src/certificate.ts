import { createHash, createPrivateKey, type KeyObject, randomBytes, X509Certificate } from 'node:crypto';
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
import {
  type AlternativeNames,
  ExtensionId,
  encodeAlternativeNames,
  encodeAuthorityKeyIdentifier,
  encodeConstraints,
  encodeKeyUsage,
  encodeSubjectKeyIdentifier,
  encodeUsages,
  KeyUsage,
  readExtensions,
} from './extensions.ts';
import { encodeSubject, type Subject } from './names.ts';
import { algorithmOf, keyText, newKeys, publicKeyOf, signed } from './signing.ts';

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Content of a certificate that is not an authority's. */
export interface Content extends Validity {
  readonly subject: Subject;
  readonly names?: AlternativeNames;
  /**
   * Usages by their names in the API. Usages other than `digital signature`, `key encipherment`, `client auth` and
   * `server auth` are omitted.
   */
  readonly usages: readonly string[];
}

/** Parts of a certificate that is read, in DER. */
export interface CertificateParts {
  readonly serialNumber: Buffer;
  /** Name of the issuer, without tag and length. */
  readonly issuer: Buffer;
  /** Name of the subject, with tag and length. */
  readonly subject: Buffer;
  readonly notAfter: Date;
  /** SubjectPublicKeyInfo. */
  readonly publicKey: Buffer;
  readonly extensions: ReadonlyMap<string, Buffer>;
}

/** Tags of the version and of the extensions of a certificate. */
const versionTag = 0xa0;
const extensionsTag = 0xa3;
/** The version of certificates with extensions. */
const version3 = encodeDer(versionTag, encodeDer(Tag.Integer, Buffer.from([2])));

/** Reads a certificate in DER. @throws DerError */
export function readCertificate(certificate: Buffer): CertificateParts {
  const [content] = derValues(onlyDer(certificate, Tag.Sequence, 'the certificate'));
  const parts = derValues(expectDer(content, Tag.Sequence, 'the content of the certificate'));
  // Certificates of version 1 do not contain the version.
  if (parts[0]?.tag === versionTag) parts.shift();
  const [serialNumber, , issuer, validity, subject, publicKey, ...further] = parts;
  expectDer(subject, Tag.Sequence, 'the subject');
  expectDer(publicKey, Tag.Sequence, 'the public key');
  const extensions = further.find(({ tag }) => tag === extensionsTag);
  return {
    serialNumber: expectDer(serialNumber, Tag.Integer, 'the serial number'),
    issuer: expectDer(issuer, Tag.Sequence, 'the issuer'),
    subject: (subject as DerValue).whole,
    notAfter: timeOf(derValues(expectDer(validity, Tag.Sequence, 'the validity'))[1]),
    publicKey: (publicKey as DerValue).whole,
    extensions: extensions ? readExtensions(onlyDer(extensions.content, Tag.Sequence, 'the extensions')) : new Map(),
  };
}

/** The identifier of a key that RFC 5280, 4.2.1.2, recommends: SHA-1 of the bits of the public key. */
function keyIdentifier(publicKey: Buffer): Buffer {
  const [, bits] = derValues(onlyDer(publicKey, Tag.Sequence, 'the public key'));
  return createHash('sha1')
    .update(expectDer(bits, Tag.BitString, 'the bits of the public key').subarray(1))
    .digest();
}

/** A random positive number of 16 octets, in the shortest form. */
function newSerialNumber(): Buffer {
  const octets = randomBytes(16);
  octets[0] = ((octets[0] ?? 0) & 0x3f) | 0x40;
  return encodeDer(Tag.Integer, octets);
}

interface Certified extends Validity {
  /** Names in DER. */
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly publicKey: Buffer;
  readonly extensions: readonly Buffer[];
}

function certify({ issuer, subject, notBefore, notAfter, publicKey, extensions }: Certified, key: KeyObject): string {
  const validity = encodeSequence(encodeTime(notBefore), encodeTime(notAfter));
  const content = encodeSequence(
    ...[version3, newSerialNumber(), algorithmOf(key), issuer, validity, subject, publicKey],
    encodeDer(extensionsTag, encodeSequence(...extensions)),
  );
  return signed('CERTIFICATE', content, key);
}

const leafExtensions = ({ usages, names = { dns: [], ips: [] } }: Content): Buffer[] => [
  encodeConstraints({ authority: false }),
  ...encodeUsages(usages),
  ...encodeAlternativeNames(names),
];

/** Creates a certificate authority. It signs no other authorities. */
export async function createAuthority(commonName: string, validity: Validity): Promise<KeyPair> {
  const keys = await newKeys();
  const subject = encodeSubject({ commonName });
  const publicKey = publicKeyOf(keys);
  const extensions = [
    encodeConstraints({ authority: true }),
    encodeKeyUsage(KeyUsage.keyCertSign | KeyUsage.cRLSign),
    encodeSubjectKeyIdentifier(keyIdentifier(publicKey)),
  ];
  const certificate = certify({ ...validity, issuer: subject, subject, publicKey, extensions }, keys.privateKey);
  return { certificate, key: keyText(keys) };
}

/** Creates a key and a certificate that is signed with it. */
export async function createSelfSigned(content: Content): Promise<KeyPair> {
  const keys = await newKeys();
  const subject = encodeSubject(content.subject);
  const extensions = leafExtensions(content);
  const certified = { ...content, issuer: subject, subject, publicKey: publicKeyOf(keys), extensions };
  return { certificate: certify(certified, keys.privateKey), key: keyText(keys) };
}

/** Creates a key and a certificate that the authority signs. */
export async function issueCertificate(authority: KeyPair, content: Content): Promise<KeyPair> {
  const keys = await newKeys();
  return { certificate: signCertificate(authority, publicKeyOf(keys), content), key: keyText(keys) };
}

/**
 * Signs a certificate for a given key. It does not outlive the authority.
 *
 * @param publicKey SubjectPublicKeyInfo in DER
 * @returns PEM
 */
export function signCertificate(authority: KeyPair, publicKey: Uint8Array, content: Content): string {
  const issuer = readCertificate(new X509Certificate(authority.certificate).raw);
  // Chains are built by the identifier that the authority's certificate contains, however it was derived.
  const given = issuer.extensions.get(ExtensionId.subjectKeyIdentifier);
  const identifier = given
    ? onlyDer(given, Tag.OctetString, 'the identifier of the key')
    : keyIdentifier(issuer.publicKey);
  return certify(
    {
      issuer: issuer.subject,
      subject: encodeSubject(content.subject),
      notBefore: content.notBefore,
      notAfter: new Date(Math.min(content.notAfter.getTime(), issuer.notAfter.getTime())),
      publicKey: Buffer.from(publicKey),
      extensions: [...leafExtensions(content), encodeAuthorityKeyIdentifier(identifier)],
    },
    createPrivateKey(authority.key),
  );
}
