import { type Agent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '@keelson/core/runtime';

/** A longer answer is an error. */
const maxAnswerBytes = 1024 * 1024;

/** A request with a document, or without one. */
export interface DocumentRequest {
  readonly url: string;
  /** JSON that is sent with POST. Absent: GET. */
  readonly content?: Buffer | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: SecureContextOptions & { readonly servername?: string; readonly rejectUnauthorized?: boolean };
  /** Default: a connection of its own. */
  readonly agent?: Agent;
  /** Timeout from the start to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

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

  constructor(url: string, problem: string, { status, unanswered = false }: { status?: number; unanswered?: boolean }) {
    super(`${url}: ${problem}`);
    this.name = 'JsonRequestError';
    this.status = status;
    this.unanswered = unanswered;
  }
}

/**
 * Sends a request and returns the answer, whatever its status is. Redirects are not followed.
 *
 * @throws JsonRequestError
 */
export function exchangeDocument(
  request: DocumentRequest,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const { url, content, headers, tls, agent, timeoutMs, clock, signal } = request;
  return new Promise((resolve, reject) => {
    let late = false;
    const options: RequestOptions & object = {
      method: content === undefined ? 'GET' : 'POST',
      headers: {
        Accept: 'application/json',
        ...(content === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': content.length }),
        ...headers,
      },
      agent: agent ?? false,
      ...(signal === undefined ? {} : { signal }),
      minVersion: 'TLSv1.2',
      ...tls,
    };
    const fail = (problem: string, unanswered: boolean) => {
      cancel();
      reject(new JsonRequestError(url, problem, { unanswered }));
    };
    const unanswered = (error: Error) => fail(late ? `no answer within ${timeoutMs} ms` : error.message, true);
    const receive = (incoming: IncomingMessage) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      incoming.on('error', unanswered);
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes <= maxAnswerBytes) return;
        fail(`the answer is longer than ${maxAnswerBytes} bytes`, false);
        incoming.destroy();
      });
      incoming.on('end', () => {
        cancel();
        resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) });
      });
    };
    const outgoing = (url.startsWith('https:') ? httpsRequest : httpRequest)(url, options, receive);
    const cancel = clock.after(timeoutMs, () => {
      late = true;
      outgoing.destroy(new Error('late'));
    });
    outgoing.on('error', unanswered);
    outgoing.end(content);
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
