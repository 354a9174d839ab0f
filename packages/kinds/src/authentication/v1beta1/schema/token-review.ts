import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { UserInfoSchema } from './user-info.ts';

const tokenReviewSpec = s.message(
  'k8s.io.api.authentication.v1beta1.TokenReviewSpec',
  'A token whose owner is asked for.',
  {
    token: always(1, s.string(), 'The token.'),
    audiences: optional(
      2,
      s.list(s.string(), { listType: 'atomic' }),
      'For whom the token should be meant; the server itself by default.',
    ),
  },
);
export interface TokenReviewSpec extends Infer<typeof tokenReviewSpec> {}
export const TokenReviewSpecSchema: Schema<TokenReviewSpec> = tokenReviewSpec;

const tokenReviewStatus = s.message('k8s.io.api.authentication.v1beta1.TokenReviewStatus', 'Whose token it is.', {
  authenticated: optional(1, s.bool(), 'True when the token is known and valid.'),
  user: filled(2, UserInfoSchema, 'The user behind it.'),
  audiences: optional(
    4,
    s.list(s.string(), { listType: 'atomic' }),
    'Of the audiences asked for those that the token is meant for.',
  ),
  error: optional(3, s.string(), 'Why the token could not be checked.'),
});
export interface TokenReviewStatus extends Infer<typeof tokenReviewStatus> {}
export const TokenReviewStatusSchema: Schema<TokenReviewStatus> = tokenReviewStatus;

const tokenReview = s.message('k8s.io.api.authentication.v1beta1.TokenReview', 'Asks who is behind a token.', {
  spec: always(2, TokenReviewSpecSchema, 'The question.'),
  status: filled(3, TokenReviewStatusSchema, 'The answer, given by the server.'),
});
export interface TokenReview extends KubeObject, Infer<typeof tokenReview> {}
export const TokenReviewSchema: Schema<TokenReview> = tokenReview;
