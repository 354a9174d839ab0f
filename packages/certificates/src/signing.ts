import { generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { encodeBits, encodeDer, encodeOid, encodeSequence, pem } from './der.ts';

/** A key pair on P-256, the type of all keys that this package creates. */
export interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const generate = promisify(generateKeyPair);

export function newKeys(): Promise<Keys> {
  return generate('ec', { namedCurve: 'P-256' });
}

/** PKCS#8 in PEM. */
export const keyText = ({ privateKey }: Keys): string => String(privateKey.export({ type: 'pkcs8', format: 'pem' }));

/** SubjectPublicKeyInfo in DER. */
export const publicKeyOf = ({ publicKey }: Keys): Buffer => publicKey.export({ type: 'spki', format: 'der' });

const asn1Null = encodeDer(0x05);

/** Signature algorithms with SHA-256 by the type of the key. */
const algorithms: Readonly<Record<string, Buffer>> = {
  ec: encodeSequence(encodeOid('1.2.840.10045.4.3.2')),
  rsa: encodeSequence(encodeOid('1.2.840.113549.1.1.11'), asn1Null),
};

/** The algorithm of signatures by this key. @throws TypeError for keys of other types than EC and RSA */
export function algorithmOf(key: KeyObject): Buffer {
  const algorithm = algorithms[key.asymmetricKeyType ?? ''];
  if (algorithm === undefined)
    throw new TypeError(`keys of the type ${key.asymmetricKeyType} cannot sign certificates`);
  return algorithm;
}

/**
 * The structure that certificates, requests and revocation lists share: the content, the algorithm, the signature.
 * @returns PEM
 */
export function signed(label: string, content: Buffer, key: KeyObject): string {
  return pem(label, encodeSequence(content, algorithmOf(key), encodeBits(sign('sha256', content, key))));
}
