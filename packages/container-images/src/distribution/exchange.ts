import { Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { rootCertificates } from 'node:tls';
import type { Clock } from '@keelson/core/runtime';
import { RegistryError } from './registry-error.ts';

export interface ExchangeRequest {
  readonly url: URL;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** A response whose body was not read. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: IncomingMessage;
}

export interface ExchangeOptions {
  readonly clock: Clock;
  readonly ca?: string | readonly string[];
  /** Timeout in milliseconds: `fetch` must complete in this time; for other requests the response must start. */
  readonly timeoutMs: number;
}

/** HTTP client with connection reuse, timeouts and size limits. */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #plain = new Agent({ keepAlive: true });
  readonly #tls: TlsAgent;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    const { ca } = options;
    const trusted = ca === undefined ? {} : { ca: [...rootCertificates, ...(typeof ca === 'string' ? [ca] : ca)] };
    this.#tls = new TlsAgent({ keepAlive: true, ...trusted });
  }

  /** Sends a request without following redirects. @throws RegistryError without a response */
  async send(request: ExchangeRequest): Promise<Answer> {
    const bound = this.#bound(request.signal);
    try {
      return await this.#begin(request, bound.signal);
    } catch (error) {
      throw unreachable(request, error, bound.signal);
    } finally {
      bound.release();
    }
  }

  /** Sends a request and reads the body. @throws RegistryError, also for a body of more than `maxBytes` */
  async fetch(request: ExchangeRequest, maxBytes: number): Promise<Answer & { readonly bytes: Buffer }> {
    const bound = this.#bound(request.signal);
    try {
      const answer = await this.#begin(request, bound.signal);
      const parts: Buffer[] = [];
      let length = 0;
      for await (const part of answer.body as AsyncIterable<Buffer>) {
        length += part.length;
        if (length > maxBytes)
          throw new RegistryError('invalid', `the response of ${request.url.host} is longer than ${maxBytes} bytes`);
        parts.push(part);
      }
      return { ...answer, bytes: Buffer.concat(parts) };
    } catch (error) {
      throw unreachable(request, error, bound.signal);
    } finally {
      bound.release();
    }
  }

  #begin(request: ExchangeRequest, signal: AbortSignal): Promise<Answer> {
    const { url, method = 'GET', headers = {}, body } = request;
    return new Promise((resolve, reject) => {
      const secure = url.protocol === 'https:';
      const options = { method, headers: { 'user-agent': 'keelson', ...headers }, signal };
      const sent = secure
        ? tlsRequest(url, { ...options, agent: this.#tls })
        : httpRequest(url, { ...options, agent: this.#plain });
      sent.on('error', (error: NodeJS.ErrnoException) => {
        // The server closed the kept connection while the request was on its way.
        const stale = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (stale && method === 'GET' && !signal.aborted) resolve(this.#begin(request, signal));
        else reject(error);
      });
      sent.on('response', (response) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response });
      });
      sent.end(body);
    });
  }

  #bound(signal: AbortSignal): { readonly signal: AbortSignal; readonly release: () => void } {
    const late = new AbortController();
    const { clock, timeoutMs } = this.#options;
    const cancel = clock.after(timeoutMs, () => late.abort(new Error(`no response within ${timeoutMs / 1000} s`)));
    return { signal: AbortSignal.any([signal, late.signal]), release: cancel };
  }
}

function unreachable({ url, signal }: ExchangeRequest, error: unknown, bound: AbortSignal): unknown {
  if (signal.aborted || error instanceof RegistryError) return error;
  const cause: unknown = bound.aborted ? bound.reason : error;
  const reason =
    cause instanceof Error ? cause.message || ('code' in cause ? String(cause.code) : cause.name) : String(cause);
  return new RegistryError('unreachable', `cannot reach ${url.host}: ${reason}`, { cause });
}
