import { createPrivateKey, X509Certificate } from 'node:crypto';

/** A client certificate with its key, both PEM, and when it is good, epoch milliseconds. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * Reads a certificate, intermediates behind it, and its key; undefined when they are none or do not belong together.
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

/** Of two certificates the one that is good for longer. */
export function laterOf(
  one: ClientCertificate | undefined,
  other: ClientCertificate | undefined,
): ClientCertificate | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.notAfterMs > one.notAfterMs ? other : one;
}
