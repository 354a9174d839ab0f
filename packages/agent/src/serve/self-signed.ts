import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto);

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const lifeMs = 365 * 86_400_000;
/** Tolerance for clients whose clocks are behind. */
const backdateMs = 3_600_000;

/** A certificate and its key, both PEM. */
export interface ServingPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** A year from now on. */
function aYear(nowMs: number): Validity {
  return { notBefore: new Date(nowMs - backdateMs), notAfter: new Date(nowMs + lifeMs) };
}

/** Creates a self-signed certificate for these names and addresses, valid for a year by default. */
export async function selfSigned(
  names: readonly string[],
  nowMs: number,
  validity = aYear(nowMs),
): Promise<ServingPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [names[0] ?? 'node'] }],
    keys,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
      ),
    ],
  });
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { certificate: certificate.toString('pem'), key: x509.PemConverter.encode(der, 'PRIVATE KEY') };
}
