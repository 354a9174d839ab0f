import { createPrivateKey, X509Certificate } from 'node:crypto';

/** A client certificate with its key, both as PEM, and its validity in epoch milliseconds. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * Parses a certificate, which intermediate certificates may follow, and its key. Returns undefined when one of them
 * cannot be parsed or when they do not match.
 */
export function clientCertificate(certificate: string, key: string): ClientCertificate | undefined {
  try {
    const parsed = new X509Certificate(certificate);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) return undefined;
    return { certificate, key, notBeforeMs: Date.parse(parsed.validFrom), notAfterMs: Date.parse(parsed.validTo) };
  } catch {
    return undefined;
  }
}

/** Returns the certificate that expires later. */
export function laterOf(
  one: ClientCertificate | undefined,
  other: ClientCertificate | undefined,
): ClientCertificate | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.notAfterMs > one.notAfterMs ? other : one;
}
