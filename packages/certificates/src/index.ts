// The only importer of the certificate library. Programs import this package on demand, because the library is large
// and most starts create no certificate.
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export { parseRevocationLists, type RevocationList } from './revocation-list.ts';

x509.cryptoProvider.set(webcrypto);

/** Algorithm of all keys and signatures. */
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate signing request and the private key that it is signed with, both PEM. */
export interface KeyAndRequest {
  readonly key: string;
  readonly request: string;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

/** Names of a server. */
export interface AlternativeNames {
  readonly dns: readonly string[];
  /** IP addresses in text form. */
  readonly ips: readonly string[];
}

/** Content of a certificate that is not an authority's. */
export interface Content extends Validity {
  readonly subject: Subject;
  readonly names?: AlternativeNames;
  /** Usages by their names in the API; others than the four of {@link usageFlags} are omitted. */
  readonly usages: readonly string[];
}

const usageFlags: Readonly<Record<string, number>> = {
  'digital signature': x509.KeyUsageFlags.digitalSignature,
  'key encipherment': x509.KeyUsageFlags.keyEncipherment,
};

const extendedUsages: Readonly<Record<string, string>> = {
  'client auth': x509.ExtendedKeyUsage.clientAuth,
  'server auth': x509.ExtendedKeyUsage.serverAuth,
};

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

async function keyText({ privateKey }: webcrypto.CryptoKeyPair): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
}

/** Organizations precede the common name, as in the requests of Kubernetes nodes. */
function nameOf({ organizations = [], commonName }: Subject): x509.JsonName {
  return [...organizations.map((value) => ({ O: [value] })), { CN: [commonName] }];
}

function extensionsOf({ usages, names = { dns: [], ips: [] } }: Content): x509.Extension[] {
  const flags = usages.reduce((sum, usage) => sum | (usageFlags[usage] ?? 0), 0);
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    ...(flags === 0 ? [] : [new x509.KeyUsagesExtension(flags, true)]),
    new x509.ExtendedKeyUsageExtension(usages.flatMap((usage) => extendedUsages[usage] ?? [])),
    ...namesExtension(names),
  ];
}

function namesExtension(names: AlternativeNames): x509.Extension[] {
  const alternative = [
    ...names.dns.map((value) => ({ type: 'dns' as const, value })),
    ...names.ips.map((value) => ({ type: 'ip' as const, value })),
  ];
  return alternative.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(alternative)];
}

async function selfSigned(
  name: x509.JsonName,
  { notBefore, notAfter }: Validity,
  extensionsFor: (keys: webcrypto.CryptoKeyPair) => Promise<x509.Extension[]> | x509.Extension[],
): Promise<KeyPair> {
  const keys = await newKeys();
  const extensions = await extensionsFor(keys);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: algorithm,
    notBefore,
    notAfter,
    extensions,
  });
  return { certificate: certificate.toString('pem'), key: await keyText(keys) };
}

/** Creates a certificate authority. It signs no other authorities. */
export async function createAuthority(commonName: string, validity: Validity): Promise<KeyPair> {
  return selfSigned(nameOf({ commonName }), validity, async ({ publicKey }) => [
    new x509.BasicConstraintsExtension(true, 0, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
  ]);
}

/** Creates a key and a certificate that is signed with it. */
export async function createSelfSigned(content: Content): Promise<KeyPair> {
  return selfSigned(nameOf(content.subject), content, () => extensionsOf(content));
}

/** Creates a key and a certificate that the authority signs. */
export async function issueCertificate(authority: KeyPair, content: Content): Promise<KeyPair> {
  const keys = await newKeys();
  const { publicKey } = keys;
  return { certificate: await signedCertificate(authority, publicKey, content), key: await keyText(keys) };
}

/**
 * Signs a certificate for a given key. It does not outlive the authority.
 *
 * @param publicKey SubjectPublicKeyInfo in DER
 * @returns PEM
 */
export async function signCertificate(authority: KeyPair, publicKey: Uint8Array, content: Content): Promise<string> {
  return signedCertificate(authority, new x509.PublicKey(new Uint8Array(publicKey)), content);
}

/** Signs a list of revoked certificates (RFC 5280). @returns PEM */
export async function createRevocationList(
  authority: KeyPair,
  revoked: readonly string[],
  { notBefore, notAfter }: Validity,
): Promise<string> {
  const list = await x509.X509CrlGenerator.create({
    issuer: new x509.X509Certificate(authority.certificate).subject,
    thisUpdate: notBefore,
    nextUpdate: notAfter,
    entries: revoked.map((certificate) => ({
      serialNumber: new x509.X509Certificate(certificate).serialNumber,
      revocationDate: notBefore,
    })),
    signingAlgorithm: algorithm,
    signingKey: await signingKeyOf(authority),
  });
  return list.toString('pem');
}

async function signingKeyOf({ key }: KeyPair): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(key), algorithm, false, ['sign']);
}

async function signedCertificate(
  authority: KeyPair,
  publicKey: webcrypto.CryptoKey | x509.PublicKey,
  content: Content,
): Promise<string> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: nameOf(content.subject),
    issuer: issuer.subject,
    publicKey,
    signingKey: await signingKeyOf(authority),
    signingAlgorithm: algorithm,
    notBefore: content.notBefore,
    notAfter: new Date(Math.min(content.notAfter.getTime(), issuer.notAfter.getTime())),
    extensions: [...extensionsOf(content), await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey)],
  });
  return certificate.toString('pem');
}

/** Creates a key and its certificate signing request (PKCS#10, RFC 2986) for this subject, and for these names. */
export async function createRequest(subject: Subject, names?: AlternativeNames): Promise<KeyAndRequest> {
  const keys = await newKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: nameOf(subject),
    keys,
    signingAlgorithm: algorithm,
    extensions: names === undefined ? [] : namesExtension(names),
  });
  return { key: await keyText(keys), request: request.toString('pem') };
}
