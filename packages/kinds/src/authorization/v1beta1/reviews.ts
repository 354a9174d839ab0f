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

/** Checks whether a user has access. */
export const AuthorizationV1beta1SubjectAccessReview: KindDefinition<Review> = defineKind({
  ...gv,
  kind: 'SubjectAccessReview',
  deprecated: deprecated('SubjectAccessReview'),
  scope: 'Cluster',
  schema: SubjectAccessReviewSchema,
  ...aboutSubject<Review>(({ spec }) => spec.group),
});
export type AuthorizationV1beta1SubjectAccessReview = Review;

/** Checks access in one namespace. Permission to create it can be granted per namespace. */
export const AuthorizationV1beta1LocalSubjectAccessReview: KindDefinition<LocalReview> = defineKind({
  ...gv,
  kind: 'LocalSubjectAccessReview',
  deprecated: deprecated('LocalSubjectAccessReview'),
  schema: LocalSubjectAccessReviewSchema,
  ...aboutSubjectHere<LocalReview>(({ spec }) => spec.group),
});
export type AuthorizationV1beta1LocalSubjectAccessReview = LocalReview;

/** Checks whether the caller has access. */
export const AuthorizationV1beta1SelfSubjectAccessReview: KindDefinition<SelfReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectAccessReview',
  deprecated: deprecated('SelfSubjectAccessReview'),
  scope: 'Cluster',
  schema: SelfSubjectAccessReviewSchema,
  ...aboutCaller<SelfReview>(),
});
export type AuthorizationV1beta1SelfSubjectAccessReview = SelfReview;

/** Lists the rules that apply to the caller in a namespace. */
export const AuthorizationV1beta1SelfSubjectRulesReview: KindDefinition<RulesReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectRulesReview',
  deprecated: deprecated('SelfSubjectRulesReview'),
  scope: 'Cluster',
  schema: SelfSubjectRulesReviewSchema,
  ...rulesOfCaller<RulesReview>(),
});
export type AuthorizationV1beta1SelfSubjectRulesReview = RulesReview;
