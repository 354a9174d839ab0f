import { generateKeyPair, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { bitString, der, distinguishedName, ecdsaWithSha256, pem, sequence } from './der.ts';

/** A new private key and its certificate signing request, both as PEM. */
export interface KeyAndRequest {
  readonly key: string;
  readonly request: string;
}

const newKeys = promisify(generateKeyPair);
const version1 = der(0x02, Buffer.of(0));
/** The request contains no attributes in addition to the subject. */
const noAttributes = der(0xa0);

/**
 * Generates a key of the curve P-256 and its certificate signing request (PKCS#10, RFC 2986) for the node of this name.
 */
export async function requestForNode(nodeName: string): Promise<KeyAndRequest> {
  const { publicKey, privateKey } = await newKeys('ec', { namedCurve: 'prime256v1' });
  const subject = distinguishedName(['O', 'system:nodes'], ['CN', `system:node:${nodeName}`]);
  const info = sequence(version1, subject, publicKey.export({ type: 'spki', format: 'der' }), noAttributes);
  const request = sequence(info, ecdsaWithSha256, bitString(sign('sha256', info, privateKey)));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    request: pem('CERTIFICATE REQUEST', request),
  };
}
