import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { hopByHopHeaders } from '@keelson/core/internal';
import type { Target } from '../routes/service-table.ts';

/** A target that sends nothing for this time is given up. */
const silenceMs = 300_000;
const maxTries = 3;

/** Origin of a request: the address of the client, and the protocol and port at which the proxy received it. */
export interface Origin {
  readonly address: string;
  readonly protocol: 'http' | 'https';
  readonly port: number;
}

/** Chooses a target that has not been tried yet. */
export type NextTarget = (tried: readonly Target[]) => Target | undefined;

/** Forwards HTTP requests and upgraded connections to targets. */
export class Forwarder {
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 64, timeout: silenceMs });

  close(): void {
    this.#agent.destroy();
  }

  /** Answers with the response of a target, 502 when none accepts the request, and 504 when it does not answer. */
  forward(incoming: IncomingMessage, response: ServerResponse, origin: Origin, next: NextTarget): void {
    const hasBody =
      incoming.headers['content-length'] !== undefined || incoming.headers['transfer-encoding'] !== undefined;
    this.#attempt(incoming, response, origin, next, hasBody, []);
  }

  #attempt(
    incoming: IncomingMessage,
    response: ServerResponse,
    origin: Origin,
    next: NextTarget,
    hasBody: boolean,
    tried: readonly Target[],
  ): void {
    const target = next(tried);
    if (target === undefined) {
      if (tried.length > 0) answer(response, 502, 'bad gateway');
      else answer(response, 503, 'no endpoints available');
      return;
    }
    const outgoing = request({
      ...{ host: target.address, port: target.port, agent: this.#agent },
      ...{ method: incoming.method, path: incoming.url, headers: headersFor(incoming, origin) },
    });
    let began = false;
    outgoing.on('response', (incomingResponse) => {
      began = true;
      response.writeHead(
        incomingResponse.statusCode ?? 502,
        incomingResponse.statusMessage,
        withoutHopHeaders(incomingResponse.headers),
      );
      incomingResponse.pipe(response);
      // A response that was cut off must not look complete.
      incomingResponse.on('error', () => response.destroy());
      incomingResponse.on('aborted', () => response.destroy());
    });
    outgoing.on('timeout', () => {
      if (!began) answer(response, 504, 'the service does not answer');
      outgoing.destroy();
    });
    outgoing.on('error', (error) => {
      if (began || response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      // A body is sent once. Without one, a request that no target has answered is sent to another.
      const { code } = error as NodeJS.ErrnoException;
      const safe = incoming.method === 'GET' || incoming.method === 'HEAD';
      if (!hasBody && tried.length + 1 < maxTries && (code === 'ECONNREFUSED' || safe))
        this.#attempt(incoming, response, origin, next, hasBody, [...tried, target]);
      else answer(response, 502, 'bad gateway');
    });
    response.on('close', () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    if (hasBody) incoming.pipe(outgoing);
    else outgoing.end();
  }

  /** Forwards a request to change the protocol, as WebSockets do, and then bytes in both directions. */
  upgrade(incoming: IncomingMessage, client: Duplex, head: Buffer, origin: Origin, next: NextTarget): void {
    client.on('error', () => {});
    const target = next([]);
    if (target === undefined) {
      refuse(client, 503, 'Service Unavailable', 'no endpoints available');
      return;
    }
    const headers = {
      ...headersFor(incoming, origin),
      connection: 'Upgrade',
      ...(incoming.headers.upgrade === undefined ? {} : { upgrade: incoming.headers.upgrade }),
    };
    const outgoing = request({
      ...{ host: target.address, port: target.port, agent: false },
      ...{ method: incoming.method, path: incoming.url, headers },
    });
    outgoing.on('error', () => refuse(client, 502, 'Bad Gateway', 'bad gateway'));
    outgoing.on('response', (response) => {
      client.write(headText(response));
      response.pipe(client);
    });
    outgoing.on('upgrade', (response, upstream, first) => {
      client.write(headText(response));
      if (first.length > 0) client.write(first);
      if (head.length > 0) upstream.write(head);
      upstream.on('error', () => client.destroy());
      upstream.on('close', () => client.end());
      client.on('close', () => upstream.destroy());
      upstream.pipe(client);
      client.pipe(upstream);
    });
    client.on('close', () => outgoing.destroy());
    outgoing.end();
  }
}

/** Headers in which clients state their origin are replaced, because clients could state anything. */
function headersFor(incoming: IncomingMessage, { address, protocol, port }: Origin): OutgoingHttpHeaders {
  return {
    ...withoutHopHeaders(incoming.headers),
    'x-forwarded-for': address,
    'x-forwarded-host': incoming.headers.host ?? '',
    'x-forwarded-port': String(port),
    'x-forwarded-proto': protocol,
    'x-real-ip': address,
  };
}

function withoutHopHeaders(headers: IncomingMessage['headers']): OutgoingHttpHeaders {
  const isHopByHop = hopByHopHeaders(headers.connection);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isHopByHop(name)));
}

export function answer(response: ServerResponse, code: number, text: string): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(code, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' });
  response.end(`${code} ${text}\n`);
}

export function refuse(client: Duplex, code: number, reason: string, text: string): void {
  if (client.destroyed || client.writableEnded) return;
  const body = `${code} ${text}\n`;
  client.end(
    `HTTP/1.1 ${code} ${reason}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function headText({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
