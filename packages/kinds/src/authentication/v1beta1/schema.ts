import type { Schema } from '@keelson/core';
import { versionTwin } from '../../versions/version-twin.ts';
import * as v1 from '../v1/schema/index.ts';

const twin = versionTwin('k8s.io.api.authentication.v1.', 'k8s.io.api.authentication.v1beta1.');

export type UserInfo = v1.UserInfo;
export const UserInfoSchema: Schema<UserInfo> = twin(v1.UserInfoSchema);

export type TokenReviewSpec = v1.TokenReviewSpec;
export const TokenReviewSpecSchema: Schema<TokenReviewSpec> = twin(v1.TokenReviewSpecSchema);

export type TokenReviewStatus = v1.TokenReviewStatus;
export const TokenReviewStatusSchema: Schema<TokenReviewStatus> = twin(v1.TokenReviewStatusSchema);

export type TokenReview = v1.TokenReview;
export const TokenReviewSchema: Schema<TokenReview> = twin(v1.TokenReviewSchema);
