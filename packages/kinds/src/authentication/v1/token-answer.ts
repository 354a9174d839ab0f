import { statusErrors, type UserInfo, type VirtualCall } from '@keelson/core';
import type { UserInfo as ShownUser, TokenReviewSpec, TokenReviewStatus } from './schema/index.ts';

/** Converts a user to the form of the API. */
export function shownUser({ name, uid, groups, extra }: UserInfo): ShownUser {
  return {
    username: name,
    ...(uid ? { uid } : {}),
    groups: [...groups],
    ...(extra ? { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) } : {}),
  };
}

/**
 * The status of a TokenReview. An unknown token is not a failure of the request; the status states it.
 *
 * @throws StatusError 400 without a token.
 */
export async function answerToken(call: VirtualCall, spec: TokenReviewSpec): Promise<TokenReviewStatus> {
  if (!spec.token) throw statusErrors.badRequest('token is required for TokenReview in authentication');
  const found = await call.authenticateToken?.(spec.token, spec.audiences ?? []);
  if (!found) return { user: {}, error: 'invalid bearer token' };
  return {
    authenticated: true,
    user: shownUser(found.user),
    ...(found.audiences?.length ? { audiences: [...found.audiences] } : {}),
  };
}
