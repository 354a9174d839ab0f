import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { UsageError } from '@keelson/core/internal';

/** A key that verifies tokens. */
export interface VerificationKey {
  /** SHA-256 of the public key in DER, as in kube-apiserver: equal keys have equal ids on every server. */
  readonly id: string;
  readonly algorithm: string;
  readonly publicKey: KeyObject;
}

/** A key that signs tokens, and verifies them. */
export interface SigningKey extends VerificationKey {
  readonly privateKey: KeyObject;
}

/** Signature algorithms by the name of the elliptic curve in OpenSSL. */
const curves: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };
const leastRsaBits = 2048;

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject, source: string): string {
  const { modulusLength = 0, namedCurve = '' } = asymmetricKeyDetails;
  if (asymmetricKeyType === 'rsa' && modulusLength >= leastRsaBits) return 'RS256';
  const algorithm = asymmetricKeyType === 'ec' ? curves[namedCurve] : undefined;
  if (algorithm !== undefined) return algorithm;
  throw new UsageError(
    `${source} must contain an RSA key of at least ${leastRsaBits} bits or an EC key on P-256, P-384 or P-521`,
  );
}

function verificationKey(publicKey: KeyObject, source: string): VerificationKey {
  const der = publicKey.export({ type: 'spki', format: 'der' });
  const id = createHash('sha256').update(der).digest('base64url');
  return { id, algorithm: algorithmOf(publicKey, source), publicKey };
}

/**
 * Reads a private key that signs tokens.
 *
 * @param source names the key in errors, such as an option and its file
 * @throws UsageError
 */
export function readSigningKey(pem: string, source: string): SigningKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    throw new UsageError(`${source} must contain a private key in PEM form without a passphrase`);
  }
  return { ...verificationKey(createPublicKey(privateKey), source), privateKey };
}

const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g;

/**
 * Reads the keys that verify tokens: public keys, certificates, or private keys, of which only the public part is
 * used.
 *
 * @throws UsageError
 */
export function readVerificationKeys(pem: string, source: string): VerificationKey[] {
  const blocks = [...pem.matchAll(pemBlock)].filter(([, label]) => label !== 'EC PARAMETERS');
  if (blocks.length === 0) throw new UsageError(`${source} must contain public keys in PEM form`);
  return blocks.map(([block]) => {
    try {
      return verificationKey(createPublicKey(block), source);
    } catch (error) {
      if (error instanceof UsageError) throw error;
      throw new UsageError(`${source} must contain public keys in PEM form`);
    }
  });
}
