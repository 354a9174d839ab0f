import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { UserInfoSchema } from './user-info.ts';

const tokenReviewSpec = s.message('k8s.io.api.authentication.v1.TokenReviewSpec', 'The token to authenticate.', {
  token: always(1, s.string(), 'The token.'),
  audiences: optional(
    2,
    s.list(s.string(), { listType: 'atomic' }),
    'Intended audiences of the token; the server itself by default.',
  ),
});
export interface TokenReviewSpec extends Infer<typeof tokenReviewSpec> {}
export const TokenReviewSpecSchema: Schema<TokenReviewSpec> = tokenReviewSpec;

const tokenReviewStatus = s.message('k8s.io.api.authentication.v1.TokenReviewStatus', 'The user of the token.', {
  authenticated: optional(1, s.bool(), 'True when the token is known and valid.'),
  user: filled(2, UserInfoSchema, 'The user of the token.'),
  audiences: optional(
    4,
    s.list(s.string(), { listType: 'atomic' }),
    'The requested audiences for which the token is valid.',
  ),
  error: optional(3, s.string(), 'Why the token could not be checked.'),
});
export interface TokenReviewStatus extends Infer<typeof tokenReviewStatus> {}
export const TokenReviewStatusSchema: Schema<TokenReviewStatus> = tokenReviewStatus;

const tokenReview = s.message('k8s.io.api.authentication.v1.TokenReview', 'Returns the user of a token.', {
  spec: always(2, TokenReviewSpecSchema, 'The request.'),
  status: filled(3, TokenReviewStatusSchema, 'The result, set by the server.'),
});
export interface TokenReview extends KubeObject, Infer<typeof tokenReview> {}
export const TokenReviewSchema: Schema<TokenReview> = tokenReview;
