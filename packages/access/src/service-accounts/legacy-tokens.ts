import { timingSafeEqual } from 'node:crypto';
import { type AuthenticateToken, isStorageError, statusErrors } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { Secret, ServiceAccount } from '@keelson/kinds';
import type { ExistingObjects } from './existing-objects.ts';
import type { SigningKey, VerificationKey } from './signing-keys.ts';
import { accountUserName, userOfAccount } from './token-claims.ts';
import { verifier } from './verify-token.ts';

/** The issuer of the tokens in Secrets, as in Kubernetes. */
const legacyIssuer = 'kubernetes/serviceaccount';

const prefix = 'kubernetes.io/serviceaccount/';
const claim = {
  namespace: `${prefix}namespace`,
  secret: `${prefix}secret.name`,
  account: `${prefix}service-account.name`,
  uid: `${prefix}service-account.uid`,
} as const;

/** Signs a token that does not expire. It is valid as long as a Secret contains it. */
export async function legacyToken(
  key: SigningKey,
  account: { readonly namespace: string; readonly name: string; readonly uid: string },
  secretName: string,
): Promise<string> {
  const { SignJWT } = await import('jose');
  return new SignJWT({
    [claim.namespace]: account.namespace,
    [claim.secret]: secretName,
    [claim.account]: account.name,
    [claim.uid]: account.uid,
  })
    .setProtectedHeader({ alg: key.algorithm, kid: key.id })
    .setIssuer(legacyIssuer)
    .setSubject(accountUserName(account.namespace, account.name))
    .sign(key.privateKey);
}

export interface LegacyTokenOptions {
  readonly keys: readonly VerificationKey[];
  /** Audiences of the API server, the only ones for which these tokens are valid. */
  readonly audiences: readonly string[];
  readonly objects: ExistingObjects;
  readonly clock: Clock;
}

/**
 * Authenticates the tokens of Secrets. Each use compares the token with that of the Secret: these tokens do not expire,
 * and deleting or changing the Secret is the only way to revoke one.
 */
export function legacyTokens({ keys, audiences: own, objects, clock }: LegacyTokenOptions): AuthenticateToken {
  const verified = verifier(keys, [legacyIssuer], clock, claimsOf);
  return async (token, audiences) => {
    const shared = audiences.length === 0 ? own : own.filter((audience) => audiences.includes(audience));
    if (shared.length === 0) return undefined;
    const claims = await verified(token);
    if (claims === undefined) return undefined;
    const { namespace, secret, account, uid } = claims;
    try {
      const holds = async (at: 'any' | 'latest') => {
        const found = await objects.read(Secret, namespace, secret, at);
        return found !== undefined && !found.metadata?.deletionTimestamp && equal(found.data?.['token'], token);
      };
      if (!(await holds('any')) && !(await holds('latest'))) return undefined;
      if (!(await objects.exists(ServiceAccount, namespace, { name: account, uid }, clock.now()))) return undefined;
    } catch (error) {
      if (!isStorageError(error)) throw error;
      throw statusErrors.serviceUnavailable('the objects of the token cannot be read now, please try again', error);
    }
    return { user: userOfAccount(namespace, account, uid), audiences: shared };
  };
}

function equal(stored: string | undefined, token: string): boolean {
  const [one, other] = [Buffer.from(stored ?? '', 'base64'), Buffer.from(token)];
  return one.length === other.length && timingSafeEqual(one, other);
}

type Claims = Readonly<Record<keyof typeof claim, string>>;

function claimsOf(payload: Readonly<Record<string, unknown>>): Claims | undefined {
  const text = (name: string) => (typeof payload[name] === 'string' ? payload[name] : '');
  const [namespace, secret, account, uid] = [claim.namespace, claim.secret, claim.account, claim.uid].map(text);
  if (!namespace || !secret || !account || !uid) return undefined;
  return payload['sub'] === accountUserName(namespace, account) ? { namespace, secret, account, uid } : undefined;
}
