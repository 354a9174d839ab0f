import type { KubeObject, Strategy, VirtualKind } from '@keelson/core';
import {
  type AccessQuestion,
  checkLocalQuestion,
  checkQuestion,
  checkReviewMetadata,
  checkSubject,
  decide,
  listRules,
  type Subject,
  subjectOf,
} from './review.ts';

/** How a review is checked and answered, in every version of it. */
interface Answered<R extends KubeObject> {
  readonly strategy: Strategy<R>;
  readonly virtual: VirtualKind<R>;
}

interface Asking<Q> extends KubeObject {
  readonly spec: Q;
}

/** Whether somebody may do something. Only the name of the groups differs between versions. */
export function aboutSubject<R extends Asking<AccessQuestion & Subject>>(
  groupsOf: (review: R) => readonly string[] | undefined,
): Answered<R> {
  return {
    strategy: {
      validate: (review) => [
        ...checkQuestion(review.spec),
        ...checkSubject(review.spec, groupsOf(review)),
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

/** The same about the namespace that the review is in. */
export function aboutSubjectHere<R extends Asking<AccessQuestion & Subject>>(
  groupsOf: (review: R) => readonly string[] | undefined,
): Answered<R> {
  return {
    strategy: {
      validate: (review) => [
        ...checkQuestion(review.spec),
        ...checkSubject(review.spec, groupsOf(review)),
        ...checkReviewMetadata(review, ['namespace']),
        ...checkLocalQuestion(review.spec, review.metadata?.namespace),
      ],
    },
    virtual: aboutSubject(groupsOf).virtual,
  };
}

/** Whether the caller may do something. */
export function aboutCaller<R extends Asking<AccessQuestion>>(): Answered<R> {
  return {
    strategy: { validate: (review) => [...checkQuestion(review.spec), ...checkReviewMetadata(review)] },
    virtual: {
      create: async (review, call) => ({ ...review, status: await decide(call, review.spec, call.context.user) }),
    },
  };
}

/** What the caller may do in a namespace. */
export function rulesOfCaller<R extends Asking<{ readonly namespace?: string }>>(): Pick<Answered<R>, 'virtual'> {
  return {
    virtual: {
      create: async (review, call) => ({ ...review, status: await listRules(call, review.spec.namespace) }),
    },
  };
}
