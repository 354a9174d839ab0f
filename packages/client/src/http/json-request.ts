import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '@keelson/core/runtime';

/** Default maximum length of a response in bytes. */
const defaultAnswerBytes = 1024 * 1024;

/** A request that may contain a JSON document. */
export interface DocumentRequest {
  readonly url: string;
  /** JSON that is sent with POST. Absent: GET. */
  readonly content?: Buffer | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: SecureContextOptions & { readonly servername?: string; readonly rejectUnauthorized?: boolean };
  /** Where the connection is made to; default: host and port of the URL. */
  readonly connectTo?: { readonly host: string; readonly port: number };
  /** The agent that provides the connection. Default: a new connection for the request. */
  readonly agent?: Agent;
  /** Timeout from the start to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Maximum length of the response in bytes; a longer one is an error. Default 1 MiB. */
  readonly answerBytes?: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

/** A request of {@link requestJson}. */
export interface JsonRequest extends Omit<DocumentRequest, 'content'> {
  /** Sent as JSON with POST. Absent: GET. */
  readonly body?: unknown;
}

/** An exchange that failed. The message contains the address and the reason, never a body or a header. */
export class JsonRequestError extends Error {
  /** The status of the answer, if one other than 200 or 201 arrived. */
  readonly status: number | undefined;
  /** True when no complete answer arrived. */
  readonly unanswered: boolean;
  /** True when the timeout has passed. */
  readonly late: boolean;

  constructor(
    url: string,
    problem: string,
    options: {
      readonly status?: number;
      readonly unanswered?: boolean;
      readonly late?: boolean;
      readonly cause?: unknown;
    },
  ) {
    super(`${url}: ${problem}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'JsonRequestError';
    this.status = options.status;
    this.unanswered = options.unanswered ?? false;
    this.late = options.late ?? false;
  }
}

/** True when the server closed a keep-alive connection before it received the request. */
function isStale(request: ClientRequest, error: NodeJS.ErrnoException): boolean {
  return request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/**
 * Sends a request and returns the answer, whatever its status is. Redirects are not followed. The request is sent again
 * when the server had closed a kept connection.
 *
 * @throws JsonRequestError
 */
export function exchangeDocument(
  request: DocumentRequest,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const { url, content, headers, tls, connectTo, agent, timeoutMs, clock, signal } = request;
  const maxBytes = request.answerBytes ?? defaultAnswerBytes;
  return new Promise((resolve, reject) => {
    let late = false;
    let outgoing: ClientRequest | undefined;
    const options: RequestOptions & object = {
      method: content === undefined ? 'GET' : 'POST',
      headers: {
        ...(connectTo === undefined ? {} : { Host: new URL(url).host }),
        Accept: 'application/json',
        ...(content === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': content.length }),
        ...headers,
      },
      agent: agent ?? false,
      ...(signal === undefined ? {} : { signal }),
      minVersion: 'TLSv1.2',
      ...(connectTo && { hostname: connectTo.host, port: connectTo.port }),
      ...tls,
    };
    const cancel = clock.after(timeoutMs, () => {
      late = true;
      outgoing?.destroy(new Error('late'));
    });
    const fail = (problem: string, { unanswered, cause }: { unanswered: boolean; cause?: Error }) => {
      cancel();
      reject(new JsonRequestError(url, problem, { unanswered, late, cause }));
    };
    const broken = (cause: Error) =>
      fail(late ? `no answer within ${timeoutMs} ms` : cause.message, { unanswered: true, cause });
    const receive = (incoming: IncomingMessage) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      incoming.on('error', broken);
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes <= maxBytes) return;
        fail(`the answer is longer than ${maxBytes} bytes`, { unanswered: false });
        incoming.destroy();
      });
      incoming.on('end', () => {
        cancel();
        resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) });
      });
    };
    const send = () => {
      let answered = false;
      const sent = (url.startsWith('https:') ? httpsRequest : httpRequest)(url, options, (incoming) => {
        answered = true;
        receive(incoming);
      });
      outgoing = sent;
      sent.on('error', (error) => {
        if (!answered && !late && signal?.aborted !== true && isStale(sent, error)) send();
        else broken(error);
      });
      sent.end(content);
    };
    send();
  });
}

/** Sends a request and returns the JSON document of the answer. Redirects are not followed. @throws JsonRequestError */
export async function requestJson({ body: document, ...request }: JsonRequest): Promise<unknown> {
  const content = document === undefined ? undefined : Buffer.from(JSON.stringify(document));
  const { status, body } = await exchangeDocument({ ...request, content });
  if (status !== 200 && status !== 201)
    throw new JsonRequestError(request.url, `the answer has the status ${status}`, { status });
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new JsonRequestError(request.url, 'the answer is not JSON', {});
  }
}
