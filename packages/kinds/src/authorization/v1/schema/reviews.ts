import { always, filled, type Infer, type KubeObject, type Schema, s } from '@keelson/core';
import {
  SelfSubjectAccessReviewSpecSchema,
  SubjectAccessReviewSpecSchema,
  SubjectAccessReviewStatusSchema,
} from './access-review.ts';
import { SelfSubjectRulesReviewSpecSchema, SubjectRulesReviewStatusSchema } from './rules.ts';

const subjectAccessReview = s.message(
  'k8s.io.api.authorization.v1.SubjectAccessReview',
  'Checks whether a user has access.',
  {
    spec: always(2, SubjectAccessReviewSpecSchema, 'The request.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface SubjectAccessReview extends KubeObject, Infer<typeof subjectAccessReview> {}
export const SubjectAccessReviewSchema: Schema<SubjectAccessReview> = subjectAccessReview;

const localSubjectAccessReview = s.message(
  'k8s.io.api.authorization.v1.LocalSubjectAccessReview',
  'Checks whether a user has access in the namespace of the review.',
  {
    spec: always(2, SubjectAccessReviewSpecSchema, 'The request; its namespace must be that of the review.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface LocalSubjectAccessReview extends KubeObject, Infer<typeof localSubjectAccessReview> {}
export const LocalSubjectAccessReviewSchema: Schema<LocalSubjectAccessReview> = localSubjectAccessReview;

const selfSubjectAccessReview = s.message(
  'k8s.io.api.authorization.v1.SelfSubjectAccessReview',
  'Checks whether the caller has access.',
  {
    spec: always(2, SelfSubjectAccessReviewSpecSchema, 'The request.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface SelfSubjectAccessReview extends KubeObject, Infer<typeof selfSubjectAccessReview> {}
export const SelfSubjectAccessReviewSchema: Schema<SelfSubjectAccessReview> = selfSubjectAccessReview;

const selfSubjectRulesReview = s.message(
  'k8s.io.api.authorization.v1.SelfSubjectRulesReview',
  'Lists the rules of the caller in a namespace.',
  {
    spec: always(2, SelfSubjectRulesReviewSpecSchema, 'The request.'),
    status: filled(3, SubjectRulesReviewStatusSchema, 'The result, set by the server.'),
  },
);
export interface SelfSubjectRulesReview extends KubeObject, Infer<typeof selfSubjectRulesReview> {}
export const SelfSubjectRulesReviewSchema: Schema<SelfSubjectRulesReview> = selfSubjectRulesReview;
