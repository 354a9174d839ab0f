import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { KubeObject, ResourceClient } from '@keelson/core';
import type { ExecutionContext } from 'ava';
import type { HttpClientOptions } from '../../src/http/http-client-options.ts';
import { createHttpClient, type HttpApiClient } from '../../src/http/http-resource-client.ts';

/** A request as the server saw it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface FakeServer {
  readonly url: string;
  /** Requests whose bodies have arrived, oldest first. */
  readonly seen: Seen[];
  readonly client: HttpApiClient;
  readonly things: ResourceClient<KubeObject>;
  /** Resolves when so many requests have been seen. */
  arrived(count: number): Promise<void>;
}

export type Handler = (request: Seen, response: ServerResponse, raw: IncomingMessage) => void;

/** A server that responds with `handler`, and a client of it. */
export async function fakeServer(
  t: ExecutionContext,
  handler: Handler,
  options: Partial<HttpClientOptions> = {},
): Promise<FakeServer> {
  const seen: Seen[] = [];
  let waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((raw, response) => {
    const chunks: Buffer[] = [];
    raw.on('data', (chunk: Buffer) => chunks.push(chunk));
    raw.on('end', () => {
      const request: Seen = {
        method: raw.method ?? '',
        url: raw.url ?? '',
        headers: raw.headers,
        body: Buffer.concat(chunks).toString(raw.headers['content-type']?.includes('json') ? 'utf8' : 'latin1'),
      };
      seen.push(request);
      handler(request, response, raw);
      for (const { count, resolve } of waiting) if (seen.length >= count) resolve();
      waiting = waiting.filter(({ count }) => seen.length < count);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createHttpClient({ server: url, ...options });
  t.teardown(async () => {
    client.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url,
    seen,
    client,
    things: client.dynamic({ group: 'g.example.com', version: 'v1', resource: 'things' }).namespace('n'),
    arrived: (count) =>
      seen.length >= count ? Promise.resolve() : new Promise((resolve) => waiting.push({ count, resolve })),
  };
}

export function sendJson(
  response: ServerResponse,
  value: unknown,
  code = 200,
  headers: Record<string, string | string[]> = {},
): void {
  response.writeHead(code, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(value));
}

export function statusBody(code: number, reason: string): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: reason, reason, code };
}

/** The error that a promise must reject with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error & { code?: unknown; reason?: unknown }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('expected a failure');
}
