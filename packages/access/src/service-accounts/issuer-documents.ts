import type { VerificationKey } from './signing-keys.ts';

/** The documents by which other services verify tokens of service accounts (OpenID Connect Discovery). */
export interface IssuerDocuments {
  /** JSON document at `/.well-known/openid-configuration`. */
  readonly configuration: string;
  /** JSON document at `/openid/v1/jwks`. */
  readonly keys: string;
}

/** Path of the document of the public keys on this server. */
export const keysPath = '/openid/v1/jwks';

/** @param jwksUri address of the document of the keys */
export function issuerDocuments(issuer: string, jwksUri: string, keys: readonly VerificationKey[]): IssuerDocuments {
  return {
    configuration: JSON.stringify({
      issuer,
      jwks_uri: jwksUri,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [...new Set(keys.map(({ algorithm }) => algorithm))],
    }),
    keys: JSON.stringify({
      keys: keys.map(({ id, algorithm, publicKey }) => ({
        use: 'sig',
        kid: id,
        alg: algorithm,
        ...publicKey.export({ format: 'jwk' }),
      })),
    }),
  };
}
