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

/** Asks whether a user may do something. */
export const SubjectAccessReview: KindDefinition<Review> = defineKind({
  ...gv,
  kind: 'SubjectAccessReview',
  scope: 'Cluster',
  schema: SubjectAccessReviewSchema,
  ...aboutSubject<Review>(({ spec }) => spec.groups),
});
export type SubjectAccessReview = Review;

/** Asks the same about one namespace, so that people of a namespace may be allowed to ask. */
export const LocalSubjectAccessReview: KindDefinition<LocalReview> = defineKind({
  ...gv,
  kind: 'LocalSubjectAccessReview',
  schema: LocalSubjectAccessReviewSchema,
  ...aboutSubjectHere<LocalReview>(({ spec }) => spec.groups),
});
export type LocalSubjectAccessReview = LocalReview;

/** Asks whether the caller may do something. */
export const SelfSubjectAccessReview: KindDefinition<SelfReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectAccessReview',
  scope: 'Cluster',
  schema: SelfSubjectAccessReviewSchema,
  ...aboutCaller<SelfReview>(),
});
export type SelfSubjectAccessReview = SelfReview;

/** Asks what the caller may do in a namespace. */
export const SelfSubjectRulesReview: KindDefinition<RulesReview> = defineKind({
  ...gv,
  kind: 'SelfSubjectRulesReview',
  scope: 'Cluster',
  schema: SelfSubjectRulesReviewSchema,
  ...rulesOfCaller<RulesReview>(),
});
export type SelfSubjectRulesReview = RulesReview;
