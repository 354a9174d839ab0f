import { type AuthenticateToken, isStorageError, statusErrors, type UserInfo } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { Node, Pod, Secret, ServiceAccount } from '@keelson/kinds';
import type { ExistingObjects } from './existing-objects.ts';
import type { VerificationKey } from './signing-keys.ts';
import { type KubernetesClaims, type TokenClaims, tokenClaims, userOfClaims } from './token-claims.ts';
import { clockToleranceSeconds, verifier } from './verify-token.ts';

export interface TokenAuthenticatorOptions {
  readonly keys: readonly VerificationKey[];
  /** Accepted issuers. */
  readonly issuers: readonly string[];
  /** Audiences of the API server: those of tokens without required audiences. */
  readonly audiences: readonly string[];
  readonly objects: ExistingObjects;
  readonly clock: Clock;
}

/** A token whose signature and issuer were verified. */
interface Verified {
  readonly claims: TokenClaims;
  readonly user: UserInfo;
}

/**
 * Authenticates tokens of service accounts: see docs/how-to/use-service-accounts.md#validity. The signature is verified
 * once per token; validity in time and the existence of the account and the bound object are checked on each use.
 */
export function serviceAccountTokens(options: TokenAuthenticatorOptions): AuthenticateToken {
  const { audiences: ownAudiences, objects, clock } = options;
  const verified = verifier<Verified>(options.keys, options.issuers, clock, (payload) => {
    const claims = tokenClaims(payload);
    return claims && { claims, user: userOfClaims(claims) };
  });

  return async (token, audiences) => {
    const found = await verified(token);
    if (found === undefined) return undefined;
    const { claims, user } = found;
    const nowMs = clock.now();
    if (nowMs >= claims.exp * 1000 || nowMs < (claims.nbf - clockToleranceSeconds) * 1000) return undefined;
    const required = audiences.length > 0 ? audiences : ownAudiences;
    const shared = required.filter((audience) => claims.aud.includes(audience));
    if (shared.length === 0) return undefined;
    try {
      return (await allExist(claims['kubernetes.io'], objects, nowMs)) ? { user, audiences: shared } : undefined;
    } catch (error) {
      if (!isStorageError(error)) throw error;
      // Neither valid nor invalid: a client that receives 401 would discard its token.
      throw statusErrors.serviceUnavailable('the objects of the token cannot be read now, please try again', error);
    }
  };
}

async function allExist(claims: KubernetesClaims, objects: ExistingObjects, nowMs: number): Promise<boolean> {
  const { namespace, serviceaccount, pod, secret, node } = claims;
  if (!(await objects.exists(ServiceAccount, namespace, serviceaccount, nowMs))) return false;
  if (secret && !(await objects.exists(Secret, namespace, secret, nowMs))) return false;
  if (pod) return objects.exists(Pod, namespace, pod, nowMs);
  // The node of a pod is not checked: the pod does not outlive its binding to the node.
  return node === undefined || objects.exists(Node, undefined, { uid: '', ...node }, nowMs);
}
