import { defineKind, type KindDefinition } from '@keelson/core';
import { aboutCaller, aboutSubject, aboutSubjectHere, rulesOfCaller } from './answered-review.ts';
import {
  type LocalSubjectAccessReview as LocalReview,
  LocalSubjectAccessReviewSchema,
  type SubjectAccessReview as Review,
  type SelfSubjectRulesReview as RulesReview,
  type SelfSubjectAccessReview as SelfReview,
  SelfSubjectAccessReviewSchema,
  SelfSubjectRulesReviewSchema,
  SubjectAccessReviewSchema,
} from './schema/index.ts';

const gv = { group: 'authorization.k8s.io', version: 'v1' } as const;

/** Checks whether a user has access. */
export const SubjectAccessReview: KindDefinition<Review> = defineKind({
  ...gv,
  kind: 'SubjectAccessReview',
  scope: 'Cluster',
  schema: SubjectAccessReviewSchema,
  ...aboutSubject<Review>(({ spec }) => spec.groups),
});
export type SubjectAccessReview = Review;

/** Checks access in one namespace. Permission to create it can be granted per namespace. */
export const LocalSubjectAccessReview: KindDefinition<LocalReview> = defineKind({
  ...gv,
  kind: 'LocalSubjectAccessReview',
  schema: LocalSubjectAccessReviewSchema,
  ...aboutSubjectHere<LocalReview>(({ spec }) => spec.groups),
});
export type LocalSubjectAccessReview = LocalReview;

/** Checks whether the caller has access. */
export const SelfSubjectAccessReview: KindDefinition<SelfReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectAccessReview',
  scope: 'Cluster',
  schema: SelfSubjectAccessReviewSchema,
  ...aboutCaller<SelfReview>(),
});
export type SelfSubjectAccessReview = SelfReview;

/** Lists the rules that apply to the caller in a namespace. */
export const SelfSubjectRulesReview: KindDefinition<RulesReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectRulesReview',
  scope: 'Cluster',
  schema: SelfSubjectRulesReviewSchema,
  ...rulesOfCaller<RulesReview>(),
});
export type SelfSubjectRulesReview = RulesReview;
