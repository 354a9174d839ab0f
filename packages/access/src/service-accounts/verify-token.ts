import { createHash } from 'node:crypto';
import type { Clock } from '@keelson/core/runtime';
import { claimedIssuer } from '../authentication/token-chain.ts';
import type { VerificationKey } from './signing-keys.ts';

/** Maximum length of a token. A longer one does not fit into the head of a request with other headers. */
const maxTokenLength = 16 * 1024;
/** Number of tokens whose verification is remembered, about 2 KiB each; the least recently used are forgotten. */
const maxRemembered = 4096;
/** The clocks of servers that share a key may differ by this. */
export const clockToleranceSeconds = 60;

/**
 * Returns a function that verifies the signature, the issuer and the times of a token, once per token, and returns what
 * `read` makes of its payload; undefined for other tokens. Callers check the expiry on each use.
 */
export function verifier<T>(
  keys: readonly VerificationKey[],
  issuers: readonly string[],
  clock: Clock,
  read: (payload: Readonly<Record<string, unknown>>) => T | undefined,
): (token: string) => Promise<T | undefined> {
  const remembered = new Map<string, T>();
  return async (token) => {
    if (token.length > maxTokenLength) return undefined;
    const key = createHash('sha256').update(token).digest('base64');
    const known = remembered.get(key);
    // Removed and added again, so that the first entry is the least recently used one.
    if (known !== undefined) remembered.delete(key);
    const payload = known === undefined ? await verifiedPayload(token, keys, issuers, clock) : undefined;
    const found = known ?? (payload && read(payload));
    if (found === undefined) return undefined;
    remembered.set(key, found);
    const oldest = remembered.keys().next();
    if (remembered.size > maxRemembered && !oldest.done) remembered.delete(oldest.value);
    return found;
  };
}

async function verifiedPayload(
  token: string,
  keys: readonly VerificationKey[],
  issuers: readonly string[],
  clock: Clock,
): Promise<Readonly<Record<string, unknown>> | undefined> {
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
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}
