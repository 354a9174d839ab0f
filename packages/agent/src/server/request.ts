import type { IncomingMessage, ServerResponse } from 'node:http';

/** Who asks. */
export interface Caller {
  readonly name: string;
  readonly groups: readonly string[];
  readonly anonymous: boolean;
}

/** A request that has been let in. */
export interface AgentRequest {
  readonly method: string;
  /** Decoded segments of the path, without empty ones at its ends. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
  readonly caller: Caller;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

/** An answer that is not what was asked for; the message is the body. */
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

/** The body, if it is not larger than allowed. */
export async function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new HttpProblem(413, `the body has more than ${maxBytes} bytes`, { Connection: 'close' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
