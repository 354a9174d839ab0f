import { defineKind, type KindDefinition } from '@keelson/core';
import { answerToken } from '../v1/token-answer.ts';
import { type TokenReview as Review, TokenReviewSchema } from './schema.ts';

/** The older version of TokenReview. */
export const AuthenticationV1beta1TokenReview: KindDefinition<Review> = defineKind({
  group: 'authentication.k8s.io',
  version: 'v1beta1',
  kind: 'TokenReview',
  deprecated: { since: '1.19', removed: '1.22', replacement: 'authentication.k8s.io/v1 TokenReview' },
  scope: 'Cluster',
  schema: TokenReviewSchema,
  virtual: { create: async (review, call) => ({ ...review, status: await answerToken(call, review.spec) }) },
});
export type AuthenticationV1beta1TokenReview = Review;
