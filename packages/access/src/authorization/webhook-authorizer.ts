import { requestJson } from '@keelson/client';
import type { AccessAttributes, AccessDecision, Authorizer, UserInfo } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import { type WebhookTarget, webhookTarget } from '../authentication/token-webhook.ts';

/** Settings of the webhook authorizer. */
export interface WebhookAuthorizerOptions {
  /** Kubeconfig file: the server is the URL to which reviews are sent, the user its credentials. */
  readonly kubeconfig: string;
  /** True: the kubeconfig is that of a cluster, to whose API reviews are posted. Default false. */
  readonly cluster?: boolean;
  /** Time for which an answer that allows is used again, in milliseconds. Default five minutes. */
  readonly authorizedTtlMs?: number;
  /** Time for which an answer that does not allow is used again, in milliseconds. Default 30 s. */
  readonly unauthorizedTtlMs?: number;
  /** Timeout of one review in milliseconds. Default 3 s. */
  readonly timeoutMs?: number;
  /** The decision without an answer: `NoOpinion` asks the next authorizer. Default `NoOpinion`. */
  readonly failurePolicy?: 'NoOpinion' | 'Deny';
  /** Greatest number of answers that are kept. Default 10,000. */
  readonly cacheEntries?: number;
}

export interface WebhookContext {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Maximum length of a review whose answer is cached. */
const maxKeyLength = 10_000;
/** Least interval of log lines about a webhook that does not answer. */
const warnMs = 60_000;

function reviewOf(attributes: AccessAttributes, user: UserInfo): Record<string, unknown> {
  const { verb, isResourceRequest, apiGroup, apiVersion, namespace, resource, subresource, name, path } = attributes;
  const given = Object.entries({ namespace, verb, group: apiGroup, version: apiVersion, resource, subresource, name });
  const { name: userName, uid, groups, extra } = user;
  return {
    ...(isResourceRequest
      ? { resourceAttributes: Object.fromEntries(given.filter(([, value]) => value !== '')) }
      : { nonResourceAttributes: { path, verb } }),
    user: userName,
    groups,
    ...(extra === undefined ? {} : { extra }),
    ...(uid === undefined ? {} : { uid }),
  };
}

/** @throws Error when the answer has no valid status */
function decisionOf(answer: unknown): AccessDecision {
  const { status } = (answer ?? {}) as { readonly status?: Record<string, unknown> };
  const { allowed, denied = false, reason = '' } = status ?? {};
  if (typeof allowed !== 'boolean' || typeof denied !== 'boolean' || typeof reason !== 'string')
    throw new Error('the answer is not a SubjectAccessReview with a status');
  if (allowed && denied) throw new Error('the answer both allows and denies the request');
  return { allowed, ...(denied ? { denied } : {}), ...(reason === '' ? {} : { reason }) };
}

interface CachedAnswer {
  readonly decision: AccessDecision;
  readonly untilMs: number;
}

/**
 * Asks a webhook by SubjectAccessReview of authorization.k8s.io/v1. Answers are cached; concurrent requests with the
 * same attributes share one review.
 */
export class WebhookAuthorizer implements Authorizer {
  readonly #target: WebhookTarget;
  readonly #options: Required<Omit<WebhookAuthorizerOptions, 'kubeconfig' | 'cluster'>>;
  readonly #context: WebhookContext;
  readonly #answers = new Map<string, CachedAnswer>();
  readonly #pending = new Map<string, Promise<AccessDecision>>();
  #warnedAt = Number.NEGATIVE_INFINITY;

  private constructor(target: WebhookTarget, options: WebhookAuthorizerOptions, context: WebhookContext) {
    this.#options = {
      authorizedTtlMs: options.authorizedTtlMs ?? 300_000,
      unauthorizedTtlMs: options.unauthorizedTtlMs ?? 30_000,
      timeoutMs: options.timeoutMs ?? 3_000,
      failurePolicy: options.failurePolicy ?? 'NoOpinion',
      cacheEntries: options.cacheEntries ?? 10_000,
    };
    this.#target = target;
    this.#context = context;
  }

  /** Reads the kubeconfig. @throws UsageError when it cannot be used */
  static async create(options: WebhookAuthorizerOptions, context: WebhookContext): Promise<WebhookAuthorizer> {
    const { kubeconfig, cluster = false } = options;
    const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
    const target = cluster
      ? await webhookTarget('--authorization-kubeconfig', kubeconfig, context.clock, reviews)
      : await webhookTarget('--authorization-webhook-config-file', kubeconfig, context.clock);
    return new WebhookAuthorizer(target, options, context);
  }

  authorize(attributes: AccessAttributes, user: UserInfo): AccessDecision | Promise<AccessDecision> {
    const spec = reviewOf(attributes, user);
    const key = JSON.stringify(spec);
    const known = this.#answers.get(key);
    if (known !== undefined && known.untilMs > this.#context.clock.monotonic()) return known.decision;
    const running = this.#pending.get(key);
    if (running !== undefined) return running;
    const pending = this.#review(key, spec).finally(() => this.#pending.delete(key));
    this.#pending.set(key, pending);
    return pending;
  }

  /** A webhook cannot list rules. */
  rulesFor = () => ({
    resourceRules: [],
    nonResourceRules: [],
    incomplete: true,
    evaluationError: 'webhook authorizer does not support user rule resolution',
  });

  /** Closes the connections. */
  close(): void {
    this.#target.agent.destroy();
  }

  async #review(key: string, spec: Record<string, unknown>): Promise<AccessDecision> {
    const { authorizedTtlMs, unauthorizedTtlMs, failurePolicy, timeoutMs } = this.#options;
    const { url, tls, agent, bearer } = this.#target;
    let decision: AccessDecision;
    try {
      const token = await bearer();
      const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
      const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
      const { clock } = this.#context;
      decision = decisionOf(await requestJson({ url, body, headers, agent, tls, timeoutMs, clock }));
    } catch (err) {
      this.#warn(err);
      return { allowed: false, ...(failurePolicy === 'Deny' ? { denied: true } : {}), reason: 'webhook unavailable' };
    }
    this.#remember(key, decision, decision.allowed ? authorizedTtlMs : unauthorizedTtlMs);
    return decision;
  }

  #remember(key: string, decision: AccessDecision, ttlMs: number): void {
    if (ttlMs <= 0 || key.length > maxKeyLength) return;
    this.#answers.delete(key);
    this.#answers.set(key, { decision, untilMs: this.#context.clock.monotonic() + ttlMs });
    // The oldest answer is the first one of the map.
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > this.#options.cacheEntries && oldest !== undefined) this.#answers.delete(oldest);
  }

  #warn(err: unknown): void {
    const now = this.#context.clock.monotonic();
    if (now - this.#warnedAt < warnMs) return;
    this.#warnedAt = now;
    this.#context.logger.warn('the authorization webhook did not answer', { component: 'authorization', err });
  }
}
