import type { KubeObject, Strategy, VirtualKind } from '@keelson/core';
import {
  type AccessQuestion,
  checkLocalQuestion,
  checkQuestion,
  checkReviewMetadata,
  checkSelectors,
  checkSubject,
  decide,
  listRules,
  type Subject,
  subjectOf,
} from './review.ts';

/** Validation and result of a kind of review, for all API versions. */
interface Answered<R extends KubeObject> {
  readonly strategy: Strategy<R>;
  readonly virtual: VirtualKind<R>;
}

interface Asking<Q> extends KubeObject {
  readonly spec: Q;
}

/** SubjectAccessReview. `groupsOf` reads the groups, whose field name depends on the API version. */
export function aboutSubject<R extends Asking<AccessQuestion & Subject>>(
  groupsOf: (review: R) => readonly string[] | undefined,
): Answered<R> {
  return {
    strategy: {
      validate: (review) => [
        ...checkQuestion(review.spec),
        ...checkSubject(review.spec, groupsOf(review)),
        ...checkSelectors(review.spec),
        ...checkReviewMetadata(review),
      ],
    },
    virtual: {
      create: async (review, call) => ({
        ...review,
        status: await decide(call, review.spec, subjectOf(review.spec, groupsOf(review))),
      }),
    },
  };
}

/** LocalSubjectAccessReview: access in the namespace of the review. */
export function aboutSubjectHere<R extends Asking<AccessQuestion & Subject>>(
  groupsOf: (review: R) => readonly string[] | undefined,
): Answered<R> {
  return {
    strategy: {
      validate: (review) => [
        ...checkQuestion(review.spec),
        ...checkSubject(review.spec, groupsOf(review)),
        ...checkSelectors(review.spec),
        ...checkReviewMetadata(review, ['namespace']),
        ...checkLocalQuestion(review.spec, review.metadata?.namespace),
      ],
    },
    virtual: aboutSubject(groupsOf).virtual,
  };
}

/** SelfSubjectAccessReview: access of the caller. */
export function aboutCaller<R extends Asking<AccessQuestion>>(): Answered<R> {
  return {
    strategy: {
      validate: (review) => [
        ...checkQuestion(review.spec),
        ...checkSelectors(review.spec),
        ...checkReviewMetadata(review),
      ],
    },
    virtual: {
      create: async (review, call) => ({ ...review, status: await decide(call, review.spec, call.context.user) }),
    },
  };
}

/** SelfSubjectRulesReview: the rules of the caller in a namespace. */
export function rulesOfCaller<R extends Asking<{ readonly namespace?: string }>>(): Pick<Answered<R>, 'virtual'> {
  return {
    virtual: {
      create: async (review, call) => ({ ...review, status: await listRules(call, review.spec.namespace) }),
    },
  };
}
