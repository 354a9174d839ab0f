import { defineKind, type KindDefinition } from '@keelson/core';
import { aboutCaller, aboutSubject, aboutSubjectHere, rulesOfCaller } from '../v1/answered-review.ts';
import {
  type LocalSubjectAccessReview as LocalReview,
  LocalSubjectAccessReviewSchema,
  type SubjectAccessReview as Review,
  type SelfSubjectRulesReview as RulesReview,
  type SelfSubjectAccessReview as SelfReview,
  SelfSubjectAccessReviewSchema,
  SelfSubjectRulesReviewSchema,
  SubjectAccessReviewSchema,
} from './schema.ts';

const gv = { group: 'authorization.k8s.io', version: 'v1beta1' } as const;

const deprecated = (kind: string) => ({
  since: '1.19',
  removed: '1.22',
  replacement: `authorization.k8s.io/v1 ${kind}`,
});

/** Asks whether a user may do something. */
export const AuthorizationV1beta1SubjectAccessReview: KindDefinition<Review> = defineKind({
  ...gv,
  kind: 'SubjectAccessReview',
  deprecated: deprecated('SubjectAccessReview'),
  scope: 'Cluster',
  schema: SubjectAccessReviewSchema,
  ...aboutSubject<Review>(({ spec }) => spec.group),
});
export type AuthorizationV1beta1SubjectAccessReview = Review;

/** Asks the same about one namespace, so that people of a namespace may be allowed to ask. */
export const AuthorizationV1beta1LocalSubjectAccessReview: KindDefinition<LocalReview> = defineKind({
  ...gv,
  kind: 'LocalSubjectAccessReview',
  deprecated: deprecated('LocalSubjectAccessReview'),
  schema: LocalSubjectAccessReviewSchema,
  ...aboutSubjectHere<LocalReview>(({ spec }) => spec.group),
});
export type AuthorizationV1beta1LocalSubjectAccessReview = LocalReview;

/** Asks whether the caller may do something. */
export const AuthorizationV1beta1SelfSubjectAccessReview: KindDefinition<SelfReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectAccessReview',
  deprecated: deprecated('SelfSubjectAccessReview'),
  scope: 'Cluster',
  schema: SelfSubjectAccessReviewSchema,
  ...aboutCaller<SelfReview>(),
});
export type AuthorizationV1beta1SelfSubjectAccessReview = SelfReview;

/** Asks what the caller may do in a namespace. */
export const AuthorizationV1beta1SelfSubjectRulesReview: KindDefinition<RulesReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectRulesReview',
  deprecated: deprecated('SelfSubjectRulesReview'),
  scope: 'Cluster',
  schema: SelfSubjectRulesReviewSchema,
  ...rulesOfCaller<RulesReview>(),
});
export type AuthorizationV1beta1SelfSubjectRulesReview = RulesReview;
