import * as certificates from '@keelson/certificates';
import type { CertificateSigner } from '@keelson/controllers';
import type { Clock } from '@keelson/core/runtime';

/** Purpose and names of a certificate. */
export interface LeafRequest {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly usage: 'server' | 'client';
  /** Names of a server. */
  readonly names?: certificates.AlternativeNames;
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
/**
 * Start of validity of node certificates before the current time. It is short enough that certificates with a validity
 * of minutes are renewed in time.
 */
const nodeBackdateMs = 300_000;

function validity(now: number, lifeMs: number, backMs = backdateMs): certificates.Validity {
  return { notBefore: new Date(now - backMs), notAfter: new Date(now + lifeMs) };
}

/** Creates a certificate authority of a data directory. */
export function createAuthority(now: number, commonName = 'keelson-ca'): Promise<certificates.KeyPair> {
  return certificates.createAuthority(commonName, validity(now, authorityLifeMs));
}

/** Issues a server or client certificate signed by `authority`. */
export function issueCertificate(
  authority: certificates.KeyPair,
  { commonName, organizations = [], usage, names, lifeMs = leafLifeMs }: LeafRequest,
  now: number,
): Promise<certificates.KeyPair> {
  return certificates.issueCertificate(authority, {
    subject: { commonName, organizations },
    ...(names === undefined ? {} : { names }),
    usages: ['digital signature', `${usage} auth`],
    ...validity(now, lifeMs),
  });
}

/**
 * Signs certificates for the certificate controller. The certificate is built from the checked fields of the request,
 * never from its bytes. Subject attributes other than organizations and the common name are omitted.
 */
export function authoritySigner(authority: certificates.KeyPair, clock: Clock): CertificateSigner {
  return async ({ subject, names, publicKey, usages, lifetimeMs }) =>
    certificates.signCertificate(authority, publicKey, {
      subject,
      names,
      usages,
      ...validity(clock.now(), lifetimeMs, nodeBackdateMs),
    });
}
