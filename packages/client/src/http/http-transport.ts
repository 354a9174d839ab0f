import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, type AgentOptions as HttpsAgentOptions, request as httpsRequest } from 'node:https';
import {
  addAbortListener,
  type Clock,
  type Logger,
  pause,
  removeAbortListener,
  silentLogger,
  systemClock,
} from '@keelson/core/runtime';
import { Backoff, TokenBucket } from '../retry/rate-limits.ts';
import { answerError, isTooLargeResourceVersion, type RequestSubject } from './answer-error.ts';
import { ConnectionError, isConnectionError } from './connection-error.ts';
import type { HttpClientOptions, Impersonation } from './http-client-options.ts';
import { type OpenAnswer, openAnswer, readBody } from './open-answer.ts';

/** A request of the resource client. */
export interface HttpCall extends RequestSubject {
  readonly method: WireRequest['method'];
  readonly path: string;
  readonly accept: string;
  readonly body?: { readonly bytes: Buffer; readonly contentType: string };
  readonly signal?: AbortSignal | undefined;
}

/** The response to a {@link HttpCall}. */
export interface HttpAnswer {
  readonly contentType: string;
  readonly body: Buffer;
}

/** A response that is read while it arrives. */
export interface HttpStream {
  readonly answer: OpenAnswer;
  /** Aborted when the caller aborts the request, or when the client is closed. */
  readonly signal: AbortSignal;
  /** To be called once, when the stream is no longer used. */
  release(): void;
}

const maxRetries = 10;
const defaultTimeoutMs = 60_000;

/** The pause that the server requests, in seconds; undefined without one or in another format. */
function retryAfterOf({ response }: OpenAnswer): number | undefined {
  const text = response.headers['retry-after'];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function impersonationHeaders({
  user,
  uid,
  groups = [],
  extra = {},
}: Impersonation): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { 'Impersonate-User': user };
  if (uid !== undefined) headers['Impersonate-Uid'] = uid;
  if (groups.length > 0) headers['Impersonate-Group'] = [...groups];
  for (const [key, values] of Object.entries(extra))
    headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = [...values];
  return headers;
}

/**
 * Sends requests and repeats those that may be repeated: requests rejected with 429 or 5xx and `Retry-After`, by which
 * the server states that nothing was changed, and reads whose connection failed. A change with an unknown outcome is
 * never repeated.
 */
export class HttpTransport {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly #options: HttpClientOptions;
  readonly #endpoint: Endpoint;
  readonly #bucket: TokenBucket | undefined;
  readonly #headers: Readonly<Record<string, string | string[]>>;
  readonly #running = new Set<AbortController>();
  readonly #streams = new Set<AbortController>();
  #closed = false;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    this.logger = options.logger ?? silentLogger;
    this.#endpoint = new Endpoint(options);
    if (options.qps !== undefined && !(options.qps > 0)) throw new Error('qps must be greater than 0');
    this.#bucket =
      options.qps === undefined ? undefined : new TokenBucket(this.clock, options.qps, options.burst ?? 10);
    this.#headers = {
      'User-Agent': options.userAgent ?? 'keelson-client',
      ...(options.impersonate ? impersonationHeaders(options.impersonate) : {}),
      ...options.headers,
    };
  }

  /** Resolves with the body of a successful response; rejects otherwise. */
  async send(call: HttpCall): Promise<HttpAnswer> {
    const scope = this.#scope(call, this.#running);
    try {
      return await this.#attempts(call, scope.signal, false, async (answer) => ({
        contentType: answer.response.headers['content-type'] ?? '',
        body: await readBody(answer),
      }));
    } finally {
      scope.release();
    }
  }

  /** Resolves with the head of a successful response. */
  async stream(call: HttpCall): Promise<HttpStream> {
    const scope = this.#scope(call, this.#streams);
    try {
      const answer = await this.#attempts(call, scope.signal, true, async (opened) => {
        opened.unlimited();
        return opened;
      });
      return { answer, ...scope };
    } catch (error) {
      scope.release();
      throw error;
    }
  }

  /** Aborts all requests and watches. */
  close(): void {
    this.#closed = true;
    const reason = new ConnectionError('Closed', 'the client was closed');
    for (const controller of [...this.#running, ...this.#streams]) controller.abort(reason);
    this.#endpoint.close();
  }

  /** Ends watches, waits for requests, then closes every connection. Nothing can be sent afterwards. */
  retire(): void {
    this.#closed = true;
    const reason = new ConnectionError('Interrupted', 'the client was replaced by another one');
    for (const controller of this.#streams) controller.abort(reason);
    this.#closeIfIdle();
  }

  #closeIfIdle(): void {
    if (this.#closed && this.#running.size === 0) this.#endpoint.close();
  }

  #scope({ signal }: HttpCall, running: Set<AbortController>): { readonly signal: AbortSignal; release(): void } {
    if (this.#closed) throw new ConnectionError('Closed', 'the client was closed');
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    if (signal?.aborted) abort();
    addAbortListener(signal, abort);
    running.add(controller);
    return {
      signal: controller.signal,
      release: () => {
        removeAbortListener(signal, abort);
        running.delete(controller);
        this.#closeIfIdle();
      },
    };
  }

  async #attempts<T>(
    call: HttpCall,
    signal: AbortSignal,
    stream: boolean,
    finish: (answer: OpenAnswer) => Promise<T>,
  ): Promise<T> {
    const backoff = new Backoff(this.clock, 50, 2_000);
    for (let retries = 0; ; retries += 1) {
      if (this.#bucket && !(await this.#bucket.take(signal))) throw aborted(call, signal);
      let waitMs: number;
      try {
        const answer = await this.#attempt(call, signal, stream);
        for (const text of warningTexts(answer.response.rawHeaders)) this.#options.onWarning?.(text);
        if (answer.code >= 200 && answer.code < 300) return await finish(answer);
        waitMs = await refusal(answer, call, retries);
      } catch (error) {
        if (call.method !== 'GET' || !isConnectionError(error, 'Interrupted') || retries >= maxRetries) throw error;
        waitMs = backoff.next();
      }
      this.logger.debug('request is repeated', { component: 'http-client', method: call.method, retries, waitMs });
      await pause(this.clock, waitMs, signal);
      if (signal.aborted) throw aborted(call, signal);
    }
  }

  async #attempt(call: HttpCall, signal: AbortSignal, stream: boolean): Promise<OpenAnswer> {
    const { compression = true, timeoutMs = defaultTimeoutMs } = this.#options;
    const { method, path, accept, body } = call;
    const token = await this.#token();
    const headers = {
      Accept: accept,
      'Accept-Encoding': compression && !stream ? 'gzip' : 'identity',
      ...this.#headers,
      ...this.#options.tracing?.headers(),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': body.contentType, 'Content-Length': body.bytes.length }),
    };
    const request: WireRequest = { method, path, headers, stream };
    return openAnswer({ endpoint: this.#endpoint, request, body: body?.bytes, signal, timeoutMs, clock: this.clock });
  }

  async #token(): Promise<string | undefined> {
    const { token, tokenProvider } = this.#options;
    if (tokenProvider === undefined) return token;
    try {
      return (await tokenProvider()).trim();
    } catch (cause) {
      throw new ConnectionError('Unreachable', 'not sent: the token provider failed', cause);
    }
  }
}

function aborted({ method, path }: HttpCall, signal: AbortSignal): ConnectionError {
  if (isConnectionError(signal.reason)) return signal.reason;
  return new ConnectionError('Aborted', `${method} ${path.split('?')[0]}: aborted by the caller`, signal.reason);
}

/** Reads a failed response: returns the pause after which the request may be repeated, or throws the error. */
async function refusal(answer: OpenAnswer, call: HttpCall, retries: number): Promise<number> {
  const retryAfterSeconds = retryAfterOf(answer);
  const body = await readBody(answer);
  const { code } = answer;
  const error = answerError({ code, body, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) }, call);
  // A resourceVersion that is too large is not retried: the server has already waited some seconds for it.
  const final = retryAfterSeconds === undefined || retries >= maxRetries || isTooLargeResourceVersion(error);
  if (final || (code !== 429 && code < 500)) throw error;
  return retryAfterSeconds * 1000;
}

const warningValue = /(\d{3}) (?:[^ ",]+) "((?:[^"\\]|\\.)*)"(?: "[^"]*")?/g;

/**
 * The texts of all `Warning` headers with code 299; other codes concern caches. `rawHeaders` alternates names and
 * values.
 */
export function warningTexts(rawHeaders: readonly string[]): string[] {
  const texts: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== 'warning') continue;
    for (const [, code, text = ''] of (rawHeaders[at + 1] ?? '').matchAll(warningValue)) {
      if (code === '299') texts.push(text.replace(/\\(.)/g, '$1'));
    }
  }
  return texts;
}

/** A request as it is sent. */
export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | number>>;
  /** True for watches, which use a separate connection pool and so never delay requests. */
  readonly stream: boolean;
}

const idleMs = 30_000;

function tlsOptions(options: HttpClientOptions): HttpsAgentOptions {
  const { ca, clientCertificate, clientKey, tlsServerName, insecureSkipTlsVerify } = options;
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    throw new Error('a client certificate and its key must be specified together');
  }
  return {
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
    ...(clientCertificate === undefined ? {} : { cert: clientCertificate }),
    ...(clientKey === undefined ? {} : { key: clientKey }),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
  };
}

/** The address of a server and its connections. */
export class Endpoint {
  /** The address for messages, without credentials and path. */
  readonly origin: string;
  /** The socket event after which the server may have received the request. */
  readonly connectEvent: 'connect' | 'secureConnect';
  readonly #prefix: string;
  readonly #address: Pick<RequestOptions, 'hostname' | 'port'>;
  readonly #start: (options: RequestOptions) => ClientRequest;
  readonly #requests: HttpAgent;
  readonly #streams: HttpAgent;

  constructor(options: HttpClientOptions) {
    const url = new URL(options.server);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw new Error(`the address of the server must begin with http:// or https://: ${options.server}`);
    }
    const secure = url.protocol === 'https:';
    this.origin = url.origin;
    this.connectEvent = secure ? 'secureConnect' : 'connect';
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#address = {
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (secure ? 443 : 80) : url.port,
    };
    this.#start = secure ? httpsRequest : httpRequest;
    const pool = (maxSockets: number): HttpAgent => {
      const shared = { keepAlive: true, keepAliveMsecs: idleMs, maxSockets, scheduling: 'lifo' as const };
      return secure ? new HttpsAgent({ ...shared, ...tlsOptions(options) }) : new HttpAgent(shared);
    };
    this.#requests = pool(options.maxConnections ?? 64);
    this.#streams = pool(Number.POSITIVE_INFINITY);
  }

  start({ method, path, headers, stream }: WireRequest): ClientRequest {
    return this.#start({
      ...this.#address,
      method,
      path: `${this.#prefix}${path}`,
      headers,
      agent: stream ? this.#streams : this.#requests,
    });
  }

  /** Closes every connection. */
  close(): void {
    this.#requests.destroy();
    this.#streams.destroy();
  }
}
