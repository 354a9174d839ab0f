import { createHash } from 'node:crypto';
import { type AuthenticateToken, isStorageError, statusErrors, type UserInfo } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { Node, Pod, Secret, ServiceAccount } from '@keelson/kinds';
import type { ExistingObjects } from './existing-objects.ts';
import type { VerificationKey } from './signing-keys.ts';
import { type KubernetesClaims, type TokenClaims, tokenClaims, userOfClaims } from './token-claims.ts';

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

/** Longer tokens do not fit into the head of a request with other headers. */
const maxTokenLength = 16 * 1024;
/** Number of tokens whose verification is remembered, about 2 KiB each; the least recently used are forgotten. */
const maxRemembered = 4096;
/** The clocks of servers that share a key may differ by this. */
const clockToleranceSeconds = 60;

/**
 * Authenticates tokens of service accounts: see docs/how-to/use-service-accounts.md#validity. The signature is verified
 * once per token; validity in time and the existence of the account and the bound object are checked on each use.
 */
export function serviceAccountTokens(options: TokenAuthenticatorOptions): AuthenticateToken {
  const { audiences: ownAudiences, objects, clock } = options;
  const remembered = new Map<string, Verified>();

  const verified = async (token: string): Promise<Verified | undefined> => {
    const key = createHash('sha256').update(token).digest('base64');
    const known = remembered.get(key);
    // Removed and added again, so that the first entry is the least recently used one.
    if (known !== undefined) remembered.delete(key);
    const found = known ?? (await verify(token, options));
    if (found === undefined) return undefined;
    remembered.set(key, found);
    const oldest = remembered.keys().next();
    if (remembered.size > maxRemembered && !oldest.done) remembered.delete(oldest.value);
    return found;
  };

  return async (token, audiences) => {
    if (token.length > maxTokenLength) return undefined;
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

/** The issuer that a token claims to have; undefined when the token is not a JWT. Nothing is verified. */
function claimedIssuer(token: string): unknown {
  const [, payload, signature, more] = token.split('.', 4);
  if (payload === undefined || signature === undefined || more !== undefined) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    return (claims as { iss?: unknown } | null)?.iss;
  } catch {
    return undefined;
  }
}

async function verify(
  token: string,
  { keys, issuers, clock }: TokenAuthenticatorOptions,
): Promise<Verified | undefined> {
  // Tokens of other issuers are for other authenticators; no signature is verified for them.
  const claimed = claimedIssuer(token);
  if (!issuers.some((issuer) => issuer === claimed)) return undefined;
  // Loaded on demand: a server without tokens does not load it.
  const { errors, jwtVerify } = await import('jose');
  try {
    const { payload } = await jwtVerify(
      token,
      ({ kid, alg }) => {
        const key = keys.find(({ id, algorithm }) => id === kid && algorithm === alg);
        if (key === undefined) throw new errors.JWKSNoMatchingKey();
        return key.publicKey;
      },
      {
        algorithms: [...new Set(keys.map(({ algorithm }) => algorithm))],
        issuer: [...issuers],
        currentDate: new Date(clock.now()),
        clockTolerance: clockToleranceSeconds,
      },
    );
    const claims = tokenClaims(payload);
    return claims && { claims, user: userOfClaims(claims) };
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

async function allExist(claims: KubernetesClaims, objects: ExistingObjects, nowMs: number): Promise<boolean> {
  const { namespace, serviceaccount, pod, secret, node } = claims;
  if (!(await objects.exists(ServiceAccount, namespace, serviceaccount, nowMs))) return false;
  if (secret && !(await objects.exists(Secret, namespace, secret, nowMs))) return false;
  if (pod) return objects.exists(Pod, namespace, pod, nowMs);
  // Beside a pod the node is information only: the pod does not outlive its binding to the node.
  return node === undefined || objects.exists(Node, undefined, { uid: '', ...node }, nowMs);
}
