import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The user of a request. */
export interface Caller {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly anonymous: boolean;
}

/** The connection of an upgrade request. */
export interface UpgradeOffer {
  readonly socket: Duplex;
  /** The bytes that were received after the request. */
  readonly head: Buffer;
}

/** An authenticated and authorized request. */
export interface AgentRequest {
  readonly method: string;
  /** Decoded segments of the path, without empty ones at its ends. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly caller: Caller;
  readonly incoming: IncomingMessage;
  /** For an upgrade request this is an HTTP response after which the connection is closed. */
  readonly response: ServerResponse;
  readonly upgrade: UpgradeOffer | undefined;
}

/** An error response; the message is the body. */
export class HttpProblem extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.name = 'HttpProblem';
    this.status = status;
    this.headers = headers;
  }
}

export function sendText(response: ServerResponse, text: string, status = 200): void {
  const body = Buffer.from(text);
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': body.length,
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(body);
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length });
  response.end(body);
}

/** Sends the text format of Prometheus. */
export function sendMetrics(response: ServerResponse, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(200, {
    'Content-Type': 'text/plain; version=0.0.4; charset=utf-8',
    'Content-Length': body.length,
  });
  response.end(body);
}

/** Reads the body up to `maxBytes`. @throws HttpProblem 413 */
export async function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes)
      throw new HttpProblem(413, `the body has more than ${maxBytes} bytes`, { Connection: 'close' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
