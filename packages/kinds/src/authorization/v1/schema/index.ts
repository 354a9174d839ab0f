export {
  type SelfSubjectAccessReviewSpec,
  SelfSubjectAccessReviewSpecSchema,
  type SubjectAccessReviewSpec,
  SubjectAccessReviewSpecSchema,
  type SubjectAccessReviewStatus,
  SubjectAccessReviewStatusSchema,
} from './access-review.ts';
export {
  type FieldSelectorAttributes,
  FieldSelectorAttributesSchema,
  type FieldSelectorRequirement,
  FieldSelectorRequirementSchema,
  type LabelSelectorAttributes,
  LabelSelectorAttributesSchema,
  type NonResourceAttributes,
  NonResourceAttributesSchema,
  type ResourceAttributes,
  ResourceAttributesSchema,
} from './attributes.ts';
export {
  type LocalSubjectAccessReview,
  LocalSubjectAccessReviewSchema,
  type SelfSubjectAccessReview,
  SelfSubjectAccessReviewSchema,
  type SelfSubjectRulesReview,
  SelfSubjectRulesReviewSchema,
  type SubjectAccessReview,
  SubjectAccessReviewSchema,
} from './reviews.ts';
export {
  type NonResourceRule,
  NonResourceRuleSchema,
  type ResourceRule,
  ResourceRuleSchema,
  type SelfSubjectRulesReviewSpec,
  SelfSubjectRulesReviewSpecSchema,
  type SubjectRulesReviewStatus,
  SubjectRulesReviewStatusSchema,
} from './rules.ts';
