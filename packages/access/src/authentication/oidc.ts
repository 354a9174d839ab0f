import { requestJson } from '@keelson/client';
import type { AuthenticatedToken, AuthenticateToken } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { JSONWebKeySet, JWTPayload } from 'jose';
import { authenticatedUser } from './request-credentials.ts';
import { cachedTokens, claimedIssuer, type TokenAuthenticator, tokenCacheMs } from './token-chain.ts';

/** A claim and the prefix of its values. */
export interface ClaimMapping {
  readonly claim: string;
  readonly prefix: string;
}

/** An issuer of JSON web tokens (OpenID Connect) and the meaning of its claims. */
export interface JwtIssuer {
  /** The claim `iss`; an https URL. */
  readonly url: string;
  /** Address of the discovery document, if it is not `url` and `/.well-known/openid-configuration`. */
  readonly discoveryUrl?: string;
  /** Authorities of the certificate of the issuer's server, PEM. Default: the authorities of the platform. */
  readonly certificateAuthority?: string;
  /** Accepted audiences. The claim `aud` must contain one of them. */
  readonly audiences: readonly string[];
  readonly username: ClaimMapping;
  readonly groups?: ClaimMapping;
  /** Name of a claim. */
  readonly uid?: string;
  /** Extra fields by key: the names of their claims. */
  readonly extra?: readonly { readonly key: string; readonly claim: string }[];
  /** Claims that must have these values. */
  readonly requiredClaims?: Readonly<Record<string, string>>;
  /** Accepted signature algorithms. Default `RS256`. */
  readonly algorithms?: readonly string[];
}

/** Asymmetric algorithms. `none` and HMAC are never accepted: with HMAC a public key would be the secret. */
export const jwtAlgorithms = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'] as const;

/** Difference between the clocks of issuer and server that is tolerated, in seconds. */
const clockToleranceSeconds = 10;
const fetchTimeoutMs = 10_000;
/** Interval at which the keys are fetched again; keys that the issuer no longer publishes are then forgotten. */
const refreshMs = 3_600_000;
/** Minimum interval between two fetches because of unknown keys or failures, in milliseconds. */
const minFetchMs = 5_000;
const maxTokenLength = 32_768;

/** The keys of an issuer. Known keys remain valid while the issuer cannot be reached. */
class IssuerKeys {
  readonly #issuer: JwtIssuer;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #keys: JSONWebKeySet | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;

  constructor(issuer: JwtIssuer, clock: Clock, logger: Logger) {
    this.#issuer = issuer;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The current keys. Stale keys are returned immediately and fetched in the background. */
  async current(): Promise<JSONWebKeySet> {
    const fetching = this.#clock.monotonic() - this.#fetchedAt >= refreshMs ? this.#fetch() : undefined;
    if (this.#keys === undefined) await fetching;
    if (this.#keys === undefined) throw new Error(`the keys of the issuer ${this.#issuer.url} are not known yet`);
    return this.#keys;
  }

  /**
   * Fetches the keys, unless that was done within the last `minFetchMs`, and returns them; undefined when they are
   * still `keys`.
   */
  async newerThan(keys: JSONWebKeySet): Promise<JSONWebKeySet | undefined> {
    await this.#fetch();
    return this.#keys === keys ? undefined : this.#keys;
  }

  #fetch(): Promise<void> {
    const now = this.#clock.monotonic();
    if (this.#fetching === undefined && now - this.#triedAt < minFetchMs) return Promise.resolve();
    this.#triedAt = now;
    this.#fetching ??= this.#load().then(
      (keys) => {
        this.#keys = keys;
        this.#fetchedAt = this.#clock.monotonic();
        this.#fetching = undefined;
      },
      (error: Error) => {
        this.#fetching = undefined;
        this.#logger.warn('the keys of an OpenID Connect issuer cannot be fetched; known keys remain in use', {
          issuer: this.#issuer.url,
          problem: error.message,
        });
      },
    );
    return this.#fetching;
  }

  async #load(): Promise<JSONWebKeySet> {
    const { url, discoveryUrl, certificateAuthority: ca } = this.#issuer;
    const get = (address: string) =>
      requestJson({ url: address, tls: ca === undefined ? {} : { ca }, timeoutMs: fetchTimeoutMs, clock: this.#clock });
    const discovery = discoveryUrl ?? `${url.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const document = (await get(discovery)) as { issuer?: unknown; jwks_uri?: unknown } | null;
    if (document?.issuer !== url)
      throw new Error(`${discovery} has the issuer ${JSON.stringify(document?.issuer)} instead of ${url}`);
    const { jwks_uri: address } = document;
    if (typeof address !== 'string' || !address.startsWith('https://'))
      throw new Error(`${discovery} has no https address in jwks_uri`);
    const keys = (await get(address)) as Partial<JSONWebKeySet> | null;
    if (!Array.isArray(keys?.keys)) throw new Error(`${address} is not a set of keys`);
    return { keys: keys.keys };
  }
}

function claimText(claims: JWTPayload, claim: string): string {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (typeof value !== 'string' || value === '')
    throw new Error(`the claim ${JSON.stringify(claim)} must be a non-empty string`);
  return value;
}

/** A claim that is a string or a list of strings. */
function claimTexts(claims: JWTPayload, claim: string): string[] {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  if (value === undefined || value === null) return [];
  const values: unknown[] = Array.isArray(value) ? value : [value];
  if (!values.every((one) => typeof one === 'string'))
    throw new Error(`the claim ${JSON.stringify(claim)} must be a string or a list of strings`);
  return values as string[];
}

/** The user described by verified claims. @throws Error for claims that do not describe a user */
function userOf(issuer: JwtIssuer, claims: JWTPayload): AuthenticatedToken {
  const { username, groups, uid, extra = [], requiredClaims = {} } = issuer;
  for (const [claim, value] of Object.entries(requiredClaims)) {
    if (claimText(claims, claim) !== value)
      throw new Error(`the claim ${JSON.stringify(claim)} does not have the required value`);
  }
  const name = claimText(claims, username.claim);
  // An email address that was not verified may belong to another user.
  const verified = claims['email_verified'];
  if (username.claim === 'email' && verified !== undefined && verified !== true) throw new Error('email not verified');
  const extraFields = extra
    .map(({ key, claim }) => [key, claimTexts(claims, claim).filter((value) => value !== '')] as const)
    .filter(([, values]) => values.length > 0);
  const user = authenticatedUser({
    name: username.prefix + name,
    ...(uid === undefined ? {} : { uid: claimText(claims, uid) }),
    groups: groups === undefined ? [] : claimTexts(claims, groups.claim).map((group) => groups.prefix + group),
    ...(extraFields.length > 0 ? { extra: Object.fromEntries(extraFields) } : {}),
  });
  return { user, notAfterMs: ((claims.exp ?? 0) + clockToleranceSeconds) * 1000 };
}

/**
 * Authenticates JSON web tokens of one issuer by its published keys. The keys are fetched when the first token of the
 * issuer arrives.
 */
export function jwtAuthenticator(
  issuer: JwtIssuer,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): TokenAuthenticator {
  const keys = new IssuerKeys(issuer, clock, logger);
  const verified = async (token: string): Promise<JWTPayload> => {
    const { createLocalJWKSet, errors, jwtVerify } = await import('jose');
    const options = {
      issuer: issuer.url,
      audience: [...issuer.audiences],
      algorithms: [...(issuer.algorithms ?? ['RS256'])],
      clockTolerance: clockToleranceSeconds,
      currentDate: new Date(clock.now()),
      requiredClaims: ['exp'],
    };
    const verify = async (set: JSONWebKeySet): Promise<JWTPayload> => {
      try {
        return (await jwtVerify(token, createLocalJWKSet(set), options)).payload;
      } catch (error) {
        if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
        // A token without the identifier of its key: any of the matching keys may have signed it.
        for await (const key of error) {
          const result = await jwtVerify(token, key, options).catch((failure: unknown) => {
            if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
          });
          if (result !== undefined) return result.payload;
        }
        throw new errors.JWSSignatureVerificationFailed();
      }
    };
    const known = await keys.current();
    return verify(known).catch(async (error: unknown) => {
      const maybeNewKey =
        error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed;
      const newer = maybeNewKey ? await keys.newerThan(known) : undefined;
      if (newer === undefined) throw error;
      return verify(newer);
    });
  };
  const authenticate: AuthenticateToken = (token, audiences) => {
    if (audiences.length > 0 || token.length > maxTokenLength || claimedIssuer(token) !== issuer.url) return undefined;
    return verified(token).then((claims) => userOf(issuer, claims));
  };
  const cache = { clock, successMs: tokenCacheMs, failureMs: 0 };
  return { name: `oidc ${issuer.url}`, authenticate: cachedTokens(authenticate, cache) };
}
