import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type AuthenticateToken, statusErrors, type UserInfo } from '@keelson/core';
import type { KnownToken } from './token-file.ts';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Finds the user of a token. The comparison takes constant time for every configured token. */
export function tokenUsers(tokens: readonly KnownToken[]): AuthenticateToken {
  const known = tokens.map(({ token, user }) => ({ hash: digest(token), user }));
  return async (token, audiences) => {
    const hash = digest(token);
    let found: UserInfo | undefined;
    for (const one of known) if (timingSafeEqual(one.hash, hash)) found = one.user;
    // Tokens of a file are valid for this server only, not for other audiences.
    return found === undefined || audiences.length > 0 ? undefined : { user: found };
  };
}

/** Accepts a token that one of the authenticators accepts; they are asked in order. Undefined: no token is valid. */
export function anyToken(...authenticators: readonly (AuthenticateToken | undefined)[]): AuthenticateToken | undefined {
  const present = authenticators.filter((one) => one !== undefined);
  if (present.length < 2) return present[0];
  return async (token, audiences) => {
    for (const authenticate of present) {
      const found = await authenticate(token, audiences);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/**
 * The user of the bearer token of a request; undefined without a token.
 *
 * @param authenticateToken undefined when no tokens are configured
 * @throws StatusError 401 for an unknown token, and for `Bearer` without a token
 */
export async function authenticateBearer(
  { headers: { authorization = '' } }: IncomingMessage,
  authenticateToken: AuthenticateToken | undefined,
): Promise<UserInfo | undefined> {
  const shown = /^\s*bearer(?:\s+(\S+)\s*$|\s|$)/i.exec(authorization);
  if (shown === null) return undefined;
  const found = shown[1] === undefined ? undefined : await authenticateToken?.(shown[1], []);
  if (found === undefined) throw statusErrors.unauthorized();
  return found.user;
}
