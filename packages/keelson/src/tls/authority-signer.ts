import 'reflect-metadata';
import type { CertificateOrder, CertificateSigner } from '@keelson/controllers';
import type { Clock } from '@keelson/core/runtime';
import * as x509 from '@peculiar/x509';
import { importSigningKey, signatureAlgorithm } from './authority.ts';
import type { KeyPair } from './key-pair.ts';

/**
 * Start of validity before the current time, because clocks may differ. It is short enough that certificates with a
 * validity of minutes can be renewed in time.
 */
const backdateMs = 300_000;

const keyUsages: Readonly<Record<string, number>> = {
  'digital signature': x509.KeyUsageFlags.digitalSignature,
  'key encipherment': x509.KeyUsageFlags.keyEncipherment,
};

const extendedUsages: Readonly<Record<string, string>> = {
  'client auth': x509.ExtendedKeyUsage.clientAuth,
  'server auth': x509.ExtendedKeyUsage.serverAuth,
};

function extensions({ usages, names }: CertificateOrder): x509.Extension[] {
  const flags = usages.reduce((sum, usage) => sum | (keyUsages[usage] ?? 0), 0);
  const alternative = [
    ...names.dns.map((value) => ({ type: 'dns' as const, value })),
    ...names.ips.map((value) => ({ type: 'ip' as const, value })),
  ];
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    ...(flags === 0 ? [] : [new x509.KeyUsagesExtension(flags, true)]),
    new x509.ExtendedKeyUsageExtension(usages.flatMap((usage) => extendedUsages[usage] ?? [])),
    ...(alternative.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(alternative)]),
  ];
}

/**
 * Signs certificates for the certificate controller. The certificate is built from the checked fields of the request,
 * never from its bytes. Subject attributes other than organizations and the common name are omitted.
 */
export function authoritySigner(authority: KeyPair, clock: Clock): CertificateSigner {
  const issuer = new x509.X509Certificate(authority.certificate);
  return async (order) => {
    const now = clock.now();
    const { organizations, commonName } = order.subject;
    const certificate = await x509.X509CertificateGenerator.create({
      subject: [...organizations.map((value) => ({ O: [value] })), { CN: [commonName] }],
      issuer: issuer.subject,
      publicKey: new x509.PublicKey(order.publicKey),
      signingKey: await importSigningKey(authority.key),
      signingAlgorithm: signatureAlgorithm,
      notBefore: new Date(now - backdateMs),
      notAfter: new Date(Math.min(now + order.lifetimeMs, issuer.notAfter.getTime())),
      extensions: [...extensions(order), await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey)],
    });
    return certificate.toString('pem');
  };
}
