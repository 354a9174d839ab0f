export {
  type SelfSubjectReview,
  SelfSubjectReviewSchema,
  type SelfSubjectReviewStatus,
  SelfSubjectReviewStatusSchema,
} from './self-subject-review.ts';
export {
  type BoundObjectReference,
  BoundObjectReferenceSchema,
  type TokenRequest,
  TokenRequestSchema,
  type TokenRequestSpec,
  TokenRequestSpecSchema,
  type TokenRequestStatus,
  TokenRequestStatusSchema,
} from './token-request.ts';
export {
  type TokenReview,
  TokenReviewSchema,
  type TokenReviewSpec,
  TokenReviewSpecSchema,
  type TokenReviewStatus,
  TokenReviewStatusSchema,
} from './token-review.ts';
export {
  type UserInfo,
  UserInfoSchema,
} from './user-info.ts';
