import { always, filled, type Infer, type KubeObject, type Schema, s } from '@keelson/core';
import {
  SelfSubjectAccessReviewSpecSchema,
  SubjectAccessReviewSpecSchema,
  SubjectAccessReviewStatusSchema,
} from './access-review.ts';
import { SelfSubjectRulesReviewSpecSchema, SubjectRulesReviewStatusSchema } from './rules.ts';

const subjectAccessReview = s.message(
  'k8s.io.api.authorization.v1.SubjectAccessReview',
  'Asks whether a user may do something.',
  {
    spec: always(2, SubjectAccessReviewSpecSchema, 'The question.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The answer, given by the server.'),
  },
);
export interface SubjectAccessReview extends KubeObject, Infer<typeof subjectAccessReview> {}
export const SubjectAccessReviewSchema: Schema<SubjectAccessReview> = subjectAccessReview;

const localSubjectAccessReview = s.message(
  'k8s.io.api.authorization.v1.LocalSubjectAccessReview',
  'Asks whether a user may do something in the namespace of the review.',
  {
    spec: always(2, SubjectAccessReviewSpecSchema, 'The question; its namespace must be that of the review.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The answer, given by the server.'),
  },
);
export interface LocalSubjectAccessReview extends KubeObject, Infer<typeof localSubjectAccessReview> {}
export const LocalSubjectAccessReviewSchema: Schema<LocalSubjectAccessReview> = localSubjectAccessReview;

const selfSubjectAccessReview = s.message(
  'k8s.io.api.authorization.v1.SelfSubjectAccessReview',
  'Asks whether the caller may do something.',
  {
    spec: always(2, SelfSubjectAccessReviewSpecSchema, 'The question.'),
    status: filled(3, SubjectAccessReviewStatusSchema, 'The answer, given by the server.'),
  },
);
export interface SelfSubjectAccessReview extends KubeObject, Infer<typeof selfSubjectAccessReview> {}
export const SelfSubjectAccessReviewSchema: Schema<SelfSubjectAccessReview> = selfSubjectAccessReview;

const selfSubjectRulesReview = s.message(
  'k8s.io.api.authorization.v1.SelfSubjectRulesReview',
  'Asks what the caller may do in a namespace.',
  {
    spec: always(2, SelfSubjectRulesReviewSpecSchema, 'The question.'),
    status: filled(3, SubjectRulesReviewStatusSchema, 'The answer, given by the server.'),
  },
);
export interface SelfSubjectRulesReview extends KubeObject, Infer<typeof selfSubjectRulesReview> {}
export const SelfSubjectRulesReviewSchema: Schema<SelfSubjectRulesReview> = selfSubjectRulesReview;
