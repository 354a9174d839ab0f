import { filled, type Infer, type KubeObject, type Schema, s } from '@keelson/core';
import { UserInfoSchema } from './user-info.ts';

const selfSubjectReviewStatus = s.message(
  'k8s.io.api.authentication.v1.SelfSubjectReviewStatus',
  'The user of the request.',
  {
    userInfo: filled(1, UserInfoSchema, 'The caller.'),
  },
);
export interface SelfSubjectReviewStatus extends Infer<typeof selfSubjectReviewStatus> {}
export const SelfSubjectReviewStatusSchema: Schema<SelfSubjectReviewStatus> = selfSubjectReviewStatus;

const selfSubjectReview = s.message(
  'k8s.io.api.authentication.v1.SelfSubjectReview',
  'Returns the user of the request.',
  {
    status: filled(2, SelfSubjectReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface SelfSubjectReview extends KubeObject, Infer<typeof selfSubjectReview> {}
export const SelfSubjectReviewSchema: Schema<SelfSubjectReview> = selfSubjectReview;
