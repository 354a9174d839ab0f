import { type ClientRequest, request as requestHttp } from 'node:http';
import { Agent, request as requestHttps } from 'node:https';
import { type HttpClientOptions, kubeconfigAccess, loadKubeconfig } from '@keelson/client';
import type { AccessAttributes, AccessDecision, Authorizer, UserInfo } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';

/** Settings of the webhook authorizer. */
export interface WebhookAuthorizerOptions {
  /** Kubeconfig file: the server is the URL to which reviews are sent, the user its credentials. */
  readonly kubeconfig: string;
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

/** Reviews with longer texts are not cached. */
const maxKeyLength = 10_000;
const maxAnswerBytes = 1024 * 1024;
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

/** Sends reviews to the URL of a kubeconfig. */
class ReviewSender {
  readonly #options: HttpClientOptions;
  readonly #timeoutMs: number;
  readonly #agent: Agent | undefined;

  constructor(options: HttpClientOptions, timeoutMs: number) {
    this.#options = options;
    this.#timeoutMs = timeoutMs;
    const { server, ca, clientCertificate, clientKey, tlsServerName, insecureSkipTlsVerify } = options;
    this.#agent = server.startsWith('https:')
      ? new Agent({
          keepAlive: true,
          minVersion: 'TLSv1.2',
          ...(ca === undefined ? {} : { ca }),
          ...(clientCertificate === undefined ? {} : { cert: clientCertificate }),
          ...(clientKey === undefined ? {} : { key: clientKey }),
          ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
          ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
        })
      : undefined;
  }

  /** The JSON of the answer. @throws Error without an answer in time, and for a status other than 200 and 201 */
  async post(body: string): Promise<unknown> {
    const { server, token, tokenProvider } = this.#options;
    const bearer = tokenProvider === undefined ? token : await tokenProvider();
    const options = {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': Buffer.byteLength(body),
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      signal: AbortSignal.timeout(this.#timeoutMs),
    };
    return new Promise((resolve, reject) => {
      const outgoing: ClientRequest =
        this.#agent === undefined
          ? requestHttp(server, options)
          : requestHttps(server, { ...options, agent: this.#agent });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        incoming.on('error', reject);
        incoming.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > maxAnswerBytes) outgoing.destroy(new Error(`the answer has more than ${maxAnswerBytes} bytes`));
          else chunks.push(chunk);
        });
        incoming.on('end', () => {
          const { statusCode = 0 } = incoming;
          if (statusCode !== 200 && statusCode !== 201) return reject(new Error(`status ${statusCode}`));
          try {
            resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')));
          } catch {
            reject(new Error('the answer is not JSON'));
          }
        });
      });
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent?.destroy();
  }
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
  readonly #sender: ReviewSender;
  readonly #options: Required<Omit<WebhookAuthorizerOptions, 'kubeconfig'>>;
  readonly #context: WebhookContext;
  readonly #answers = new Map<string, CachedAnswer>();
  readonly #pending = new Map<string, Promise<AccessDecision>>();
  #warnedAt = Number.NEGATIVE_INFINITY;

  private constructor(access: HttpClientOptions, options: WebhookAuthorizerOptions, context: WebhookContext) {
    this.#options = {
      authorizedTtlMs: options.authorizedTtlMs ?? 300_000,
      unauthorizedTtlMs: options.unauthorizedTtlMs ?? 30_000,
      timeoutMs: options.timeoutMs ?? 3_000,
      failurePolicy: options.failurePolicy ?? 'NoOpinion',
      cacheEntries: options.cacheEntries ?? 10_000,
    };
    this.#sender = new ReviewSender(access, this.#options.timeoutMs);
    this.#context = context;
  }

  /** Reads the kubeconfig. @throws UsageError when it cannot be used */
  static async create(options: WebhookAuthorizerOptions, context: WebhookContext): Promise<WebhookAuthorizer> {
    const { kubeconfig } = options;
    try {
      const config = await loadKubeconfig({ path: kubeconfig });
      const { options: access } = await kubeconfigAccess(config, { clock: context.clock });
      const { protocol } = new URL(access.server);
      if (protocol !== 'https:' && protocol !== 'http:') throw new Error('the server must be an http or https URL');
      return new WebhookAuthorizer(access, options, context);
    } catch (error) {
      throw new UsageError(`the webhook kubeconfig ${kubeconfig} cannot be used: ${(error as Error).message}`);
    }
  }

  authorize(attributes: AccessAttributes, user: UserInfo): AccessDecision | Promise<AccessDecision> {
    const spec = reviewOf(attributes, user);
    const key = JSON.stringify(spec);
    const known = this.#answers.get(key);
    if (known !== undefined && known.untilMs > this.#context.clock.monotonic()) return known.decision;
    const running = this.#pending.get(key);
    if (running !== undefined) return running;
    const pending = this.#review(key).finally(() => this.#pending.delete(key));
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
    this.#sender.close();
  }

  async #review(key: string): Promise<AccessDecision> {
    const { authorizedTtlMs, unauthorizedTtlMs, failurePolicy } = this.#options;
    const body = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":${key}}`;
    let decision: AccessDecision;
    try {
      decision = decisionOf(await this.#sender.post(body));
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
