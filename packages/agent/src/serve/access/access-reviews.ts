import type { ApiClient } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { SubjectAccessReview } from '@keelson/kinds';
import { type Caller, HttpProblem } from '../http/request.ts';
import { AnswerCache } from './answer-cache.ts';
import { type NodeAttributes, shownAttributes } from './node-attributes.ts';

export interface AccessReviewsOptions {
  readonly api: Pick<ApiClient, 'resource'>;
  readonly nodeName: string;
  /** How long answers are cached that allowed a request. */
  readonly allowedMs: number;
  readonly refusedMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Authorizes a request. @throws HttpProblem 403 when it is denied, 500 when the review failed */
export type Authorize = (caller: Caller, attributes: NodeAttributes) => Promise<void>;

/** Allows every request (--authorization-mode=AlwaysAllow). */
export const alwaysAllow: Authorize = async () => {};

/**
 * Authorizes requests by the API server: see docs/reference/agent-rules.md#access-to-the-agent. The whole review spec
 * is the key of the cache.
 */
export function accessReviews(options: AccessReviewsOptions): Authorize {
  const { api, nodeName, allowedMs, refusedMs, clock, logger } = options;
  const reviews = api.resource(SubjectAccessReview);
  const answers = new AnswerCache<boolean>({ clock, ttlMs: (allowed) => (allowed ? allowedMs : refusedMs) });

  async function ask(spec: SubjectAccessReview['spec']): Promise<boolean> {
    const { status } = await reviews.create({
      apiVersion: SubjectAccessReview.apiVersion,
      kind: SubjectAccessReview.kind,
      spec,
    } as SubjectAccessReview);
    if (status === undefined) throw new Error('the review was not answered');
    return status.allowed === true;
  }

  return async (caller, attributes) => {
    const { name, groups, uid, extra } = caller;
    const { verb, subresource } = attributes;
    const spec: SubjectAccessReview['spec'] = {
      user: name,
      groups: [...groups],
      ...(uid === undefined ? {} : { uid }),
      ...(extra === undefined
        ? {}
        : { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) }),
      resourceAttributes: { verb, version: 'v1', resource: 'nodes', name: nodeName, subresource },
    };
    const allowed = await answers
      .get(JSON.stringify(spec), () => ask(spec))
      .catch((error: unknown) => {
        if (error instanceof HttpProblem) throw error;
        logger.warn('authorizing a request failed', { user: name, verb, subresource, err: error });
        throw new HttpProblem(500, `Authorization error ${shownAttributes(caller, attributes)}`);
      });
    if (!allowed) throw new HttpProblem(403, `Forbidden ${shownAttributes(caller, attributes)}`);
  };
}
