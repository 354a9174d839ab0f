import type { AdmissionPlugin, AuthenticateToken, KindDefinition } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { ServiceAccount } from '@keelson/kinds';
import { ExistingObjects, type StorageOfKind } from './existing-objects.ts';
import { type IssuerDocuments, issuerDocuments, keysPath } from './issuer-documents.ts';
import { legacyToken, legacyTokens } from './legacy-tokens.ts';
import { serviceAccountAdmission } from './pod-admission.ts';
import { readSigningKey, readVerificationKeys } from './signing-keys.ts';
import { serviceAccountTokens } from './token-authenticator.ts';
import { tokenSubresource } from './token-subresource.ts';

/** Settings of the tokens of service accounts. */
export interface ServiceAccountOptions {
  /** Private key that signs tokens, PEM: RSA, or EC on P-256, P-384 or P-521. All servers of a store need the same. */
  readonly signingKey: string;
  /** Keys that verify tokens beside the signing key, PEM, such as earlier signing keys. */
  readonly verificationKeys?: readonly string[];
  /** The issuer of tokens, then further accepted issuers. Default: {@link defaultIssuer}. */
  readonly issuers?: readonly string[];
  /** Audiences of the API server. Default: the issuers. */
  readonly audiences?: readonly string[];
  /** Address of the public keys, for the discovery document. Default: this server. */
  readonly jwksUri?: string;
  /** Greatest validity of a token. Default: none. */
  readonly maxExpirationSeconds?: number;
  /** See `--service-account-extend-token-expiration`. Default false. */
  readonly extendExpiration?: boolean;
}

/** The issuer of tokens by default. The name is valid in every cluster; it need not resolve. */
export const defaultIssuer = 'https://kubernetes.default.svc.cluster.local';

/** Identities of pods and their tokens. */
export interface ServiceAccounts {
  readonly authenticateToken: AuthenticateToken;
  /** Audiences of this server. */
  readonly audiences: readonly string[];
  /**
   * Signs a token that does not expire. It is valid as long as the account exists and the Secret contains the token.
   */
  signLegacyToken(
    account: { readonly namespace: string; readonly name: string; readonly uid: string },
    secretName: string,
  ): Promise<string>;
  /** Adds the subresource that issues tokens to the kind ServiceAccount. Returns other kinds unchanged. */
  withTokens(kind: KindDefinition): KindDefinition;
  readonly admission: AdmissionPlugin;
  /** @param address of this server, without a trailing slash */
  documents(address: string): IssuerDocuments;
}

/** @throws UsageError for invalid keys */
export function createServiceAccounts(
  options: ServiceAccountOptions,
  storages: StorageOfKind,
  clock: Clock,
): ServiceAccounts {
  const { issuers = [defaultIssuer], audiences = issuers, maxExpirationSeconds, extendExpiration = false } = options;
  const key = readSigningKey(options.signingKey, 'the signing key of service accounts');
  const more = (options.verificationKeys ?? []).flatMap((pem) =>
    readVerificationKeys(pem, 'the verification keys of service accounts'),
  );
  const keys = [key, ...more.filter(({ id }) => id !== key.id)];
  const objects = new ExistingObjects(storages);
  const issuer = issuers[0] ?? defaultIssuer;
  const token = tokenSubresource({
    ...{ key, issuer, audiences, extendExpiration, objects },
    ...(maxExpirationSeconds === undefined ? {} : { maxExpirationSeconds }),
  });
  const authenticate = serviceAccountTokens({ keys, issuers, audiences, objects, clock });
  const authenticateLegacy = legacyTokens({ keys, audiences, objects, clock });
  return {
    audiences,
    authenticateToken: async (given, wanted) =>
      (await authenticate(given, wanted)) ?? (await authenticateLegacy(given, wanted)),
    signLegacyToken: (account, secretName) => legacyToken(key, account, secretName),
    withTokens: (kind) =>
      kind === (ServiceAccount as unknown) ? { ...kind, subresources: [...kind.subresources, token] } : kind,
    admission: serviceAccountAdmission({ objects, clock }),
    documents: (address) => issuerDocuments(issuer, options.jwksUri ?? address + keysPath, keys),
  };
}
