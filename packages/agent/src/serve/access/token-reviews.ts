import type { ApiClient } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { TokenReview } from '@keelson/kinds';
import type { Caller } from '../http/request.ts';
import { AnswerCache } from './answer-cache.ts';

export interface TokenReviewsOptions {
  readonly api: Pick<ApiClient, 'resource'>;
  /** How long answers are cached, positive and negative ones. */
  readonly cacheMs: number;
  readonly clock: Clock;
}

/** Returns the user of a token; undefined when it is not valid. */
export type ReviewToken = (token: string) => Promise<Caller | undefined>;

/**
 * Authenticates tokens by the API server, with one request per token within the cache time: see
 * docs/reference/agent-rules.md#access-to-the-agent. Rejects when the server does not answer.
 */
export function tokenReviews({ api, cacheMs, clock }: TokenReviewsOptions): ReviewToken {
  const reviews = api.resource(TokenReview);
  const answers = new AnswerCache<Caller | undefined>({ clock, ttlMs: () => cacheMs });

  async function review(token: string): Promise<Caller | undefined> {
    const { status } = await reviews.create({
      apiVersion: TokenReview.apiVersion,
      kind: TokenReview.kind,
      spec: { token },
    } as TokenReview);
    const { authenticated = false, user = {}, error = '' } = status ?? {};
    if (!authenticated) {
      if (error !== '') throw new Error(`reviewing the token failed: ${error}`);
      return undefined;
    }
    const { username = '', uid = '', groups = [], extra } = user;
    if (username === '') throw new Error('the token review contains no user');
    return {
      name: username,
      groups,
      anonymous: false,
      ...(uid === '' ? {} : { uid }),
      ...(extra === undefined ? {} : { extra }),
    };
  }

  return (token) => answers.get(token, () => review(token));
}
