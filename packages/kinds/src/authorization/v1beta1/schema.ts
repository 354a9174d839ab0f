import { always, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';
import { versionTwin } from '../../versions/version-twin.ts';
import * as v1 from '../v1/schema/index.ts';

// Upstream, the selectors of the older version are the messages of the newer one.
const twin = versionTwin('k8s.io.api.authorization.v1.', 'k8s.io.api.authorization.v1beta1.', [
  v1.FieldSelectorAttributesSchema,
  v1.LabelSelectorAttributesSchema,
]);

export type ResourceAttributes = v1.ResourceAttributes;
export const ResourceAttributesSchema: Schema<ResourceAttributes> = twin(v1.ResourceAttributesSchema);

export type NonResourceAttributes = v1.NonResourceAttributes;
export const NonResourceAttributesSchema: Schema<NonResourceAttributes> = twin(v1.NonResourceAttributesSchema);

const subjectAccessReviewSpec = s.message(
  'k8s.io.api.authorization.v1beta1.SubjectAccessReviewSpec',
  'The user and the request to check.',
  {
    resourceAttributes: optional(
      1,
      ResourceAttributesSchema,
      'A request for resources; exclusive with nonResourceAttributes.',
    ),
    nonResourceAttributes: optional(
      2,
      NonResourceAttributesSchema,
      'A request for a path; exclusive with resourceAttributes.',
    ),
    user: optional(3, s.string(), 'Name of the user. A user or a group is required.'),
    group: optional(4, s.list(s.string(), { listType: 'atomic' }), 'Groups of the user.'),
    extra: optional(5, s.map(s.list(s.string())), 'Additional information of the authenticator.'),
    uid: optional(6, s.string(), 'Unique id of the user, which does not change when the user is renamed.'),
  },
);
export interface SubjectAccessReviewSpec extends Infer<typeof subjectAccessReviewSpec> {}
export const SubjectAccessReviewSpecSchema: Schema<SubjectAccessReviewSpec> = subjectAccessReviewSpec;

export type SelfSubjectAccessReviewSpec = v1.SelfSubjectAccessReviewSpec;
export const SelfSubjectAccessReviewSpecSchema: Schema<SelfSubjectAccessReviewSpec> = twin(
  v1.SelfSubjectAccessReviewSpecSchema,
);

export type SubjectAccessReviewStatus = v1.SubjectAccessReviewStatus;
export const SubjectAccessReviewStatusSchema: Schema<SubjectAccessReviewStatus> = twin(
  v1.SubjectAccessReviewStatusSchema,
);

export type ResourceRule = v1.ResourceRule;
export const ResourceRuleSchema: Schema<ResourceRule> = twin(v1.ResourceRuleSchema);

export type NonResourceRule = v1.NonResourceRule;
export const NonResourceRuleSchema: Schema<NonResourceRule> = twin(v1.NonResourceRuleSchema);

export type SubjectRulesReviewStatus = v1.SubjectRulesReviewStatus;
export const SubjectRulesReviewStatusSchema: Schema<SubjectRulesReviewStatus> = twin(v1.SubjectRulesReviewStatusSchema);

export type SelfSubjectRulesReviewSpec = v1.SelfSubjectRulesReviewSpec;
export const SelfSubjectRulesReviewSpecSchema: Schema<SelfSubjectRulesReviewSpec> = twin(
  v1.SelfSubjectRulesReviewSpecSchema,
);

const subjectAccessReview = s.message(
  'k8s.io.api.authorization.v1beta1.SubjectAccessReview',
  'Checks whether a user has access.',
  {
    spec: always(2, SubjectAccessReviewSpecSchema, 'The request.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface SubjectAccessReview extends KubeObject, Infer<typeof subjectAccessReview> {}
export const SubjectAccessReviewSchema: Schema<SubjectAccessReview> = subjectAccessReview;

const localSubjectAccessReview = s.message(
  'k8s.io.api.authorization.v1beta1.LocalSubjectAccessReview',
  'Checks whether a user has access in the namespace of the review.',
  {
    spec: always(2, SubjectAccessReviewSpecSchema, 'The request; its namespace must be that of the review.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface LocalSubjectAccessReview extends KubeObject, Infer<typeof localSubjectAccessReview> {}
export const LocalSubjectAccessReviewSchema: Schema<LocalSubjectAccessReview> = localSubjectAccessReview;

export type SelfSubjectAccessReview = v1.SelfSubjectAccessReview;
export const SelfSubjectAccessReviewSchema: Schema<SelfSubjectAccessReview> = twin(v1.SelfSubjectAccessReviewSchema);

export type SelfSubjectRulesReview = v1.SelfSubjectRulesReview;
export const SelfSubjectRulesReviewSchema: Schema<SelfSubjectRulesReview> = twin(v1.SelfSubjectRulesReviewSchema);
