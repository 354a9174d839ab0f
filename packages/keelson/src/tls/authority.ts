import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { KeyPair } from './key-pair.ts';

x509.cryptoProvider.set(webcrypto);

/** Signature algorithm of all certificates. */
export const signatureAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Purpose and names of a certificate. */
export interface LeafRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly usage: 'server' | 'client';
  /** DNS names and IP addresses of a server. */
  readonly names?: readonly { readonly type: 'dns' | 'ip'; readonly value: string }[];
  /** Default: a year. */
  readonly lifeMs?: number;
}

const dayMs = 86_400_000;
/** Certificates are renewed at start when their remaining validity is shorter. */
export const renewBeforeMs = 30 * dayMs;
const authorityLifeMs = 3650 * dayMs;
const leafLifeMs = 365 * dayMs;
/** Start of validity before the current time, because clocks of clients may differ. */
const backdateMs = 3_600_000;

async function exportKey(keys: webcrypto.CryptoKeyPair): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return x509.PemConverter.encode(der, 'PRIVATE KEY');
}

/** Imports the private key of a PEM text for signing. */
export async function importSigningKey(pem: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', x509.PemConverter.decodeFirst(pem), signatureAlgorithm, false, ['sign']);
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(signatureAlgorithm, true, ['sign', 'verify']);
}

function validity(lifeMs: number, now: number): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - backdateMs), notAfter: new Date(now + lifeMs) };
}

/** Creates the certificate authority of a data directory. */
export async function createAuthority(now: number): Promise<KeyPair> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=keelson-ca',
    keys,
    signingAlgorithm: signatureAlgorithm,
    ...validity(authorityLifeMs, now),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys) };
}

/** Issues a server or client certificate signed by `authority`. */
export async function issueCertificate(authority: KeyPair, request: LeafRequest, now: number): Promise<KeyPair> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await importSigningKey(authority.key);
  const keys = await newKeys();
  const usage = request.usage === 'server' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [...(request.organizations ?? []).map((value) => ({ O: [value] })), { CN: [request.commonName] }],
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: signatureAlgorithm,
    ...validity(request.lifeMs ?? leafLifeMs, now),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([usage]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ...(request.names ? [new x509.SubjectAlternativeNameExtension([...request.names])] : []),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys) };
}
