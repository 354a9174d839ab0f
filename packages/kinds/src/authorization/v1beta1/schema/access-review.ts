import { always, type Infer, optional, type Schema, s } from '@keelson/core';
import { NonResourceAttributesSchema, ResourceAttributesSchema } from './attributes.ts';

const subjectAccessReviewSpec = s.message(
  'k8s.io.api.authorization.v1beta1.SubjectAccessReviewSpec',
  'Who wants to do what.',
  {
    resourceAttributes: optional(
      1,
      ResourceAttributesSchema,
      'A request about objects; either this or nonResourceAttributes.',
    ),
    nonResourceAttributes: optional(
      2,
      NonResourceAttributesSchema,
      'A request about a path; either this or resourceAttributes.',
    ),
    user: optional(3, s.string(), 'Name of the user. It or a group is needed.'),
    group: optional(4, s.list(s.string(), { listType: 'atomic' }), 'Groups of the user.'),
    extra: optional(5, s.map(s.list(s.string())), 'What else the authenticator knows about the user.'),
    uid: optional(6, s.string(), 'Identity of the user that survives renaming.'),
  },
);
export interface SubjectAccessReviewSpec extends Infer<typeof subjectAccessReviewSpec> {}
export const SubjectAccessReviewSpecSchema: Schema<SubjectAccessReviewSpec> = subjectAccessReviewSpec;

const selfSubjectAccessReviewSpec = s.message(
  'k8s.io.api.authorization.v1beta1.SelfSubjectAccessReviewSpec',
  'What the caller wants to do.',
  {
    resourceAttributes: optional(
      1,
      ResourceAttributesSchema,
      'A request about objects; either this or nonResourceAttributes.',
    ),
    nonResourceAttributes: optional(
      2,
      NonResourceAttributesSchema,
      'A request about a path; either this or resourceAttributes.',
    ),
  },
);
export interface SelfSubjectAccessReviewSpec extends Infer<typeof selfSubjectAccessReviewSpec> {}
export const SelfSubjectAccessReviewSpecSchema: Schema<SelfSubjectAccessReviewSpec> = selfSubjectAccessReviewSpec;

const subjectAccessReviewStatus = s.message(
  'k8s.io.api.authorization.v1beta1.SubjectAccessReviewStatus',
  'Whether it is allowed.',
  {
    allowed: always(1, s.bool(), 'True when it is allowed.'),
    denied: optional(4, s.bool(), 'True when it is forbidden whatever else may allow it.'),
    reason: optional(2, s.string(), 'Why, for people.'),
    evaluationError: optional(3, s.string(), 'What went wrong on the way; the answer stands all the same.'),
  },
);
export interface SubjectAccessReviewStatus extends Infer<typeof subjectAccessReviewStatus> {}
export const SubjectAccessReviewStatusSchema: Schema<SubjectAccessReviewStatus> = subjectAccessReviewStatus;
