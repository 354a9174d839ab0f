import { type AuthenticatedToken, type AuthenticateToken, isStatusError } from '@keelson/core';
import { parseJsonObject } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import { tokenDigests } from './token-file.ts';

/** A source of identities of bearer tokens. */
export interface TokenAuthenticator {
  /** Name of the source in log messages. */
  readonly name: string;
  /**
   * Checks a token; undefined when it is not one of this source. After an error, which is logged, the next source is
   * asked.
   */
  readonly authenticate: AuthenticateToken;
}

export interface TokenCacheOptions {
  readonly clock: Clock;
  /** Time in milliseconds for which a valid token is not checked again; at most until it expires. */
  readonly successMs: number;
  /** Time in milliseconds for which an invalid token is rejected without a check. 0: every time checked. */
  readonly failureMs: number;
  /**
   * Maximum number of cached valid tokens, and likewise of invalid ones; the oldest are removed first. Default 4,096.
   */
  readonly entries?: number;
}

type Found = AuthenticatedToken | undefined;

/** Time in milliseconds for which a verified JSON web token is accepted without a new check. */
export const tokenCacheMs = 10_000;

interface Entry {
  readonly found: Found;
  /** Wall time, because tokens expire by wall time. */
  readonly until: number;
}

/**
 * Caches results of an authenticator that is asynchronous; synchronous results are cheaper than the cache. The keys are
 * digests with a random secret, so that the memory contains no tokens. Concurrent checks of one token are one check.
 */
export function cachedTokens(authenticate: AuthenticateToken, options: TokenCacheOptions): AuthenticateToken {
  const { clock, successMs, failureMs, entries = 4096 } = options;
  const digest = tokenDigests();
  // Invalid tokens have a cache of their own, so that a flood of them does not displace valid ones.
  const valid = new Map<string, Entry>();
  const invalid = new Map<string, Entry>();
  const running = new Map<string, Promise<Found>>();
  const store = (key: string, found: Found): Found => {
    const now = clock.now();
    const until = Math.min(
      now + (found === undefined ? failureMs : successMs),
      found?.notAfterMs ?? Number.POSITIVE_INFINITY,
    );
    if (until <= now) return found;
    const cache = found === undefined ? invalid : valid;
    if (cache.size >= entries) {
      const [oldest = ''] = cache.keys();
      cache.delete(oldest);
    }
    cache.set(key, { found, until });
    return found;
  };
  return (token, audiences) => {
    const key = digest(JSON.stringify([token, audiences]));
    const known = valid.get(key) ?? invalid.get(key);
    if (known !== undefined) {
      if (known.until > clock.now()) return known.found;
      valid.delete(key);
      invalid.delete(key);
    }
    const earlier = running.get(key);
    if (earlier !== undefined) return earlier;
    const answer = authenticate(token, audiences);
    if (!(answer instanceof Promise)) return answer;
    const shared = answer.then((found) => store(key, found)).finally(() => running.delete(key));
    running.set(key, shared);
    return shared;
  };
}

/**
 * A source whose tokens name no audience of Kubernetes: they are valid for the audiences of the server and no other.
 */
export function tokensForServer(source: TokenAuthenticator, own: readonly string[]): TokenAuthenticator {
  return {
    name: source.name,
    authenticate: (token, wanted) => {
      if (wanted.length === 0) return source.authenticate(token, []);
      const audiences = wanted.filter((audience) => own.includes(audience));
      if (audiences.length === 0) return undefined;
      const found = source.authenticate(token, []);
      const forThem = (known: Found) => known && { ...known, audiences };
      return found instanceof Promise ? found.then(forThem) : forThem(found);
    },
  };
}

/** Minimum period between two log lines about one source, in milliseconds. */
const logPeriodMs = 10_000;

/**
 * Asks each source in turn until one knows the token. An error of a source is logged and the next one is asked, except
 * a StatusError: it is the answer to the request, for example when the objects of a token cannot be read now.
 */
export function tokenChain(
  sources: readonly TokenAuthenticator[],
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): AuthenticateToken {
  const silentUntil = new Map<string, number>();
  const report = ({ name }: TokenAuthenticator, err: unknown): undefined => {
    if (isStatusError(err)) throw err;
    const now = clock.monotonic();
    if (now < (silentUntil.get(name) ?? 0)) return;
    silentUntil.set(name, now + logPeriodMs);
    logger.error('Unable to authenticate the request', { authenticator: name, err });
  };
  return (token, audiences) => {
    const from = (start: number): Found | Promise<Found> => {
      for (const [offset, source] of sources.slice(start).entries()) {
        const next = start + offset + 1;
        let found: ReturnType<AuthenticateToken>;
        try {
          found = source.authenticate(token, audiences);
        } catch (error) {
          found = report(source, error);
        }
        if (found instanceof Promise)
          return found.catch((error: unknown) => report(source, error)).then((known) => known ?? from(next));
        if (found !== undefined) return found;
      }
      return undefined;
    };
    return from(0);
  };
}

/** The issuer that a token claims to have; undefined when the token is not a JWT. Nothing is verified. */
export function claimedIssuer(token: string): unknown {
  const [, payload, signature, more] = token.split('.', 4);
  if (payload === undefined || signature === undefined || more !== undefined) return undefined;
  return parseJsonObject(Buffer.from(payload, 'base64url').toString('utf8'))?.['iss'];
}
