import { type Agent, request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Clock } from '@keelson/core/runtime';

/** A longer answer is an error. */
const maxAnswerBytes = 1024 * 1024;

export interface JsonRequest {
  readonly url: string;
  /** Sent as JSON with POST. Absent: GET. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: SecureContextOptions & { readonly servername?: string; readonly rejectUnauthorized?: boolean };
  /** Default: a connection of its own. */
  readonly agent?: Agent;
  /** Timeout from the start to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
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

/** Sends a request and returns the JSON document of the answer. Redirects are not followed. @throws JsonRequestError */
export function requestJson({ url, body, headers, tls, agent, timeoutMs, clock }: JsonRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    let late = false;
    const options: RequestOptions & object = {
      method: content === undefined ? 'GET' : 'POST',
      headers: {
        Accept: 'application/json',
        ...(content === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': content.length }),
        ...headers,
      },
      agent: agent ?? false,
      minVersion: 'TLSv1.2',
      ...tls,
    };
    const fail = (problem: string, about: { status?: number; unanswered?: boolean } = {}) => {
      cancel();
      reject(new JsonRequestError(url, problem, about));
    };
    const unanswered = (error: Error) =>
      fail(late ? `no answer within ${timeoutMs} ms` : error.message, { unanswered: true });
    const receive = (incoming: IncomingMessage) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      incoming.on('error', unanswered);
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes <= maxAnswerBytes) return;
        fail(`the answer is longer than ${maxAnswerBytes} bytes`);
        incoming.destroy();
      });
      incoming.on('end', () => {
        cancel();
        const status = incoming.statusCode ?? 0;
        if (status !== 200 && status !== 201) return fail(`the answer has the status ${status}`, { status });
        try {
          resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')));
        } catch {
          fail('the answer is not JSON');
        }
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
