import {
  type Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
} from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { UserInfo } from '@keelson/core';
import type { ResourceRegistry } from '@keelson/core/internal';
import { type Clock, noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import type { ExecutionContext } from 'ava';
import { createHttpApi, type HttpApi, type HttpApiOptions, serverOptions } from '../../src/index.ts';
import { FakeRegistry } from './fake-registry.ts';

export const admin: UserInfo = { name: 'admin', groups: ['system:masters', 'system:authenticated'] };

export interface Served {
  readonly api: HttpApi;
  readonly server: Server;
  readonly port: number;
}

export type ServeOptions = Partial<HttpApiOptions> & {
  registry?: ResourceRegistry;
  clock?: Clock;
  /** Requests pass a middleware that does nothing, and therefore Koa. */
  viaKoa?: boolean;
};

/** A server on a free loopback port, stopped when the test ends. */
export async function serve(t: ExecutionContext, options: ServeOptions = {}): Promise<Served> {
  const api = createHttpApi({
    registry: new FakeRegistry(),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    version: { major: '1', minor: '32', gitVersion: 'v1.32.0' },
    insecureUser: admin,
    ...(options.viaKoa ? { own: { middleware: [(_, next) => next()] } } : {}),
    ...options,
  });
  const server = createServer(serverOptions, api.listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { api, server, port: (server.address() as AddressInfo).port };
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of any shape
  readonly json: any;
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
  /** Default: a connection of its own. */
  readonly agent?: Agent;
}

/** Sends a request and returns the response while its body is still received. */
export function open(port: number, method: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string | string[]> = { ...options.headers };
    if (
      options.body !== undefined &&
      headers['content-length'] === undefined &&
      headers['transfer-encoding'] === undefined
    ) {
      headers['content-length'] = String(Buffer.byteLength(options.body));
    }
    // Bodies of unknown type are not served without credentials.
    if (method === 'POST' && options.body !== undefined) headers['content-type'] ??= 'application/json';
    const req = request({ host: '127.0.0.1', port, method, path, headers, agent: options.agent ?? false }, resolve);
    req.once('error', reject);
    req.end(options.body);
  });
}

export async function call(port: number, method: string, path: string, options: CallOptions = {}): Promise<Reply> {
  const response = await open(port, method, path, options);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const text = body.toString();
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body,
    text,
    get json() {
      return JSON.parse(text);
    },
  };
}

/** Newline-separated JSON documents as they are received. */
export async function* lines(
  response: IncomingMessage,
): AsyncGenerator<{ type: string; object: Record<string, unknown> }> {
  let rest = '';
  for await (const chunk of response) {
    rest += String(chunk);
    for (let at = rest.indexOf('\n'); at !== -1; at = rest.indexOf('\n')) {
      yield JSON.parse(rest.slice(0, at));
      rest = rest.slice(at + 1);
    }
  }
}

/**
 * Exact bytes over a plain connection; resolves with all received bytes once `until` returns true or the server closes.
 */
export function raw(
  port: number,
  bytes: string | Buffer,
  until: (text: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (until(text)) socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(text));
  });
}
