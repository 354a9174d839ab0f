import { always, type Infer, optional, type Schema, s } from '@keelson/core';
import { NonResourceAttributesSchema, ResourceAttributesSchema } from './attributes.ts';

const subjectAccessReviewSpec = s.message(
  'k8s.io.api.authorization.v1.SubjectAccessReviewSpec',
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
    groups: optional(4, s.list(s.string(), { listType: 'atomic' }), 'Groups of the user.'),
    extra: optional(5, s.map(s.list(s.string())), 'Additional information of the authenticator.'),
    uid: optional(6, s.string(), 'Unique id of the user, which does not change when the user is renamed.'),
  },
);
export interface SubjectAccessReviewSpec extends Infer<typeof subjectAccessReviewSpec> {}
export const SubjectAccessReviewSpecSchema: Schema<SubjectAccessReviewSpec> = subjectAccessReviewSpec;

const selfSubjectAccessReviewSpec = s.message(
  'k8s.io.api.authorization.v1.SelfSubjectAccessReviewSpec',
  'The request to check.',
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
  },
);
export interface SelfSubjectAccessReviewSpec extends Infer<typeof selfSubjectAccessReviewSpec> {}
export const SelfSubjectAccessReviewSpecSchema: Schema<SelfSubjectAccessReviewSpec> = selfSubjectAccessReviewSpec;

const subjectAccessReviewStatus = s.message(
  'k8s.io.api.authorization.v1.SubjectAccessReviewStatus',
  'Whether it is allowed.',
  {
    allowed: always(1, s.bool(), 'True when it is allowed.'),
    denied: optional(4, s.bool(), 'True when it is denied regardless of other authorizers.'),
    reason: optional(2, s.string(), 'Human-readable reason.'),
    evaluationError: optional(3, s.string(), 'Errors during the evaluation; the decision is valid nevertheless.'),
  },
);
export interface SubjectAccessReviewStatus extends Infer<typeof subjectAccessReviewStatus> {}
export const SubjectAccessReviewStatusSchema: Schema<SubjectAccessReviewStatus> = subjectAccessReviewStatus;
