import { defineKind, type KindDefinition } from '@keelson/core';
import {
  type TokenReview as Review,
  type SelfSubjectReview as SelfReview,
  SelfSubjectReviewSchema,
  TokenReviewSchema,
} from './schema/index.ts';
import { answerToken, shownUser } from './token-answer.ts';

const gv = { group: 'authentication.k8s.io', version: 'v1' } as const;

/** Requests the user of a token. */
export const TokenReview: KindDefinition<Review> = defineKind({
  ...gv,
  kind: 'TokenReview',
  scope: 'Cluster',
  schema: TokenReviewSchema,
  virtual: { create: async (review, call) => ({ ...review, status: await answerToken(call, review.spec) }) },
});
export type TokenReview = Review;

/** Requests the attributes of the user who sends the request. */
export const SelfSubjectReview: KindDefinition<SelfReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectReview',
  scope: 'Cluster',
  schema: SelfSubjectReviewSchema,
  virtual: {
    create: (review, { context, now }) => ({
      ...review,
      metadata: { ...review.metadata, creationTimestamp: `${now.toISOString().slice(0, 19)}Z` },
      status: { userInfo: shownUser(context.user) },
    }),
  },
});
export type SelfSubjectReview = SelfReview;
