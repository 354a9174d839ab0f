import { randomUUID } from 'node:crypto';
import { Agent } from 'node:https';
import { exchangeDocument } from '@keelson/client';
import { type AdmissionRequest, type Status, StatusError, statusErrors } from '@keelson/core';
import { isDocumentError, isJsonObject, jsonText, parseJson, printableText } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { webhooksV1 } from '@keelson/kinds';
import { AnswerError, failureOf, resolvedFor, webhookHeaders } from '../services/call-failure.ts';
import type { ResolveService } from '../services/resolve-service.ts';
import { type ReviewResponse, readResponse, reviewBody, reviewVersion } from './admission-review.ts';
import type { WebhookFields } from './webhook-index.ts';

/** Maximum size of a response. This suffices for any patch, which cannot be larger than a request. */
const answerBytes = 4 * 1024 * 1024;
const maxConnections = 128;
/** Maximum size of the details of a denial; larger details are omitted. */
const maxDetails = 32 * 1024;
const defaultTimeoutSeconds = 10;

/**
 * A webhook call without a valid response. The failure policy of the webhook determines whether the request is
 * rejected.
 */
export class CallFailure extends Error {
  /** HTTP status code of the response, or the code that represents the failure in metrics. */
  readonly code: number;

  constructor(webhook: string, reason: string, code: number, cause?: unknown) {
    super(`failed calling webhook ${JSON.stringify(webhook)}: ${reason}`, { cause });
    this.name = 'CallFailure';
    this.code = code;
  }
}

export interface WebhookCallerOptions {
  readonly clock: Clock;
  readonly resolveService: ResolveService;
}

/** Converts the denial of a webhook to a StatusError. */
export function denial(webhook: string, { status }: Pick<ReviewResponse, 'status'>): StatusError {
  const { code, message, reason, details } = status;
  const deniedBy = `admission webhook ${JSON.stringify(webhook)} denied the request`;
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const why = text(message) || text(reason);
  const known = typeof code === 'number' && Number.isInteger(code) && code >= 400 && code <= 599 ? code : 400;
  const { status: shown } = statusErrors.relayed(
    known,
    why === '' ? `${deniedBy} without explanation` : `${deniedBy}: ${why}`,
  );
  const { reason: _, ...rest } = shown;
  return new StatusError({
    ...rest,
    ...(text(reason) === '' ? {} : { reason: reason as Status['reason'] }),
    ...(isJsonObject(details) && jsonText(details).length <= maxDetails
      ? { details: details as Status['details'] }
      : {}),
  } as Status);
}

/**
 * The target of a webhook call: the URL with its timeout, and for a service of the cluster the address to connect to.
 */
interface Address {
  readonly url: string;
  readonly connectTo?: { readonly host: string; readonly port: number };
  readonly servername?: string;
}

/** Calls webhooks over HTTPS, on kept connections. */
export class WebhookCaller {
  readonly #options: WebhookCallerOptions;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: maxConnections, maxFreeSockets: maxConnections });

  constructor(options: WebhookCallerOptions) {
    this.#options = options;
  }

  close(): void {
    this.#agent.destroy();
  }

  /**
   * Sends a review.
   *
   * @param text the members of the request: see `requestText`
   * @throws CallFailure
   */
  async call(
    { name, clientConfig, timeoutSeconds = defaultTimeoutSeconds, admissionReviewVersions }: WebhookFields,
    { context }: AdmissionRequest,
    text: string,
    mutating: boolean,
  ): Promise<ReviewResponse> {
    const version = reviewVersion(admissionReviewVersions);
    if (version === undefined) {
      const why = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)';
      throw new CallFailure(name, `could not create admission objects: ${why}`, 400);
    }
    const uid = randomUUID();
    const content = reviewBody(version, uid, text);
    const answer = await this.#exchange(clientConfig, content, timeoutSeconds, context.signal).catch(
      (error: unknown) => {
        context.signal?.throwIfAborted();
        const { reason, code } = failureOf(error);
        throw new CallFailure(name, `failed to call webhook: ${reason}`, code, error);
      },
    );
    try {
      return readResponse(answer, version, uid, mutating);
    } catch (error) {
      const why = printableText((error as Error).message);
      throw new CallFailure(name, `received invalid webhook response: ${why}`, 503);
    }
  }

  async #exchange(
    config: webhooksV1.WebhookClientConfig,
    content: Buffer,
    timeoutSeconds: number,
    signal: AbortSignal | undefined,
  ): Promise<unknown> {
    const { url, connectTo, servername } = await this.#address(config, timeoutSeconds);
    const { clock } = this.#options;
    const ca = config.caBundle === undefined ? undefined : Buffer.from(config.caBundle, 'base64');
    const { status, body } = await exchangeDocument({
      url,
      content,
      headers: webhookHeaders,
      agent: this.#agent,
      timeoutMs: timeoutSeconds * 1000,
      answerBytes,
      clock,
      ...(signal === undefined ? {} : { signal }),
      ...(connectTo === undefined ? {} : { connectTo }),
      tls: { ...(ca === undefined ? {} : { ca }), ...(servername === undefined ? {} : { servername }) },
    });
    if (status < 200 || status > 206) throw new AnswerError(statusText(status), status);
    return parsed(body);
  }

  async #address(config: webhooksV1.WebhookClientConfig, timeoutSeconds: number): Promise<Address> {
    const { service } = config;
    const query = `?timeout=${timeoutSeconds}s`;
    if (service === undefined) return { url: `${config.url ?? ''}${query}` };
    const { namespace, name, path = '/', port = 443 } = service;
    const servername = `${name}.${namespace}.svc`;
    const slash = path.startsWith('/') ? '' : '/';
    const url = `https://${servername}:${port}${slash}${path}${query}`;
    const connectTo = await resolvedFor(url, this.#options.resolveService(namespace, name, port));
    return { url, connectTo, servername };
  }
}

/** The error text for a response with an HTTP error. The body is not included, because any server may have sent it. */
function statusText(status: number): string {
  if (status >= 300 && status < 400)
    return `the webhook attempted to redirect this request (${status}), which is not permitted`;
  if (status === 404) return 'the server could not find the requested resource';
  if (status === 401) return 'the server has asked for the client to provide credentials';
  if (status === 405) return 'the server does not allow this method on the requested resource';
  if (status === 429) return 'the server has received too many requests and has asked us to try again later';
  if (status === 503) return 'the server is currently unable to handle the request';
  if (status >= 500) return 'an error on the server ("unknown") has prevented the request from succeeding';
  return 'the server rejected our request for an unknown reason';
}

/** @throws AnswerError */
function parsed(body: Buffer): unknown {
  try {
    return parseJson(body).value;
  } catch (error) {
    if (!isDocumentError(error)) throw error;
    throw new AnswerError(`couldn't get version/kind; json parse error: ${error.message}`, 503);
  }
}
