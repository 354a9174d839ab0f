import type { IncomingMessage } from 'node:http';
import { Agent } from 'node:https';
import type { Socket } from 'node:net';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ConnectSubresource, isStatusError, StatusReason, statusErrors } from '@keelson/core';
import type { RequestAttributes, Target } from '@keelson/core/internal';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import { type AggregatedServer, identityHeaders, originHeaders } from '../exchange/aggregated-apis.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { type FlatHeaders, sendBytes, sendHead } from '../exchange/exchange.ts';
import type { HttpLimits, NodeDialer } from '../exchange/options.ts';
import { mayHaveBody } from '../exchange/request-body.ts';
import { type MessageForm, openWebSocket, subprotocolsOf } from '../exchange/web-socket.ts';
import type { Route } from '../resource/resource-handler.ts';
import { switchingHead } from './headers.ts';
import { checkUpgrade, judgeAnswer, judgeApiAnswer, originOf, prefixOf } from './judge-answer.ts';
import { hasLinks, linkRewriting } from './rewrite-links.ts';
import { callUpstream, findUpstream, type UpstreamAnswer, type UpstreamCall } from './upstream.ts';

export interface ConnectHandlerOptions {
  readonly clock: Clock;
  readonly limits: HttpLimits;
  /** Finds the agents of nodes. Undefined: connect requests to nodes are answered with 503. */
  readonly dialer: NodeDialer | undefined;
}

const nothing = Buffer.alloc(0);

/** Subresources whose calls may last for any time, as in kube-apiserver. */
const unbounded: ReadonlySet<string> = new Set(['attach', 'exec', 'proxy', 'log', 'portforward']);

/** The part of the path after the subresource, as the client sent it. */
function tailOf({ path, remainder }: RequestAttributes): string {
  if (remainder.length === 0) return '/';
  return `/${path.split('/').slice(-remainder.length).join('/')}`;
}

/** Forwards the requests on connect subresources to nodes and pods. */
export class ConnectHandler {
  readonly #options: ConnectHandlerOptions;
  readonly #open = new Set<Exchange>();
  /** Keep-alive connections to aggregated servers. */
  readonly #connections = new Agent({ keepAlive: true, maxFreeSockets: 64 });

  constructor(options: ConnectHandlerOptions) {
    this.#options = options;
  }

  /**
   * Aborts every open call. Calls such as `exec` and `log --follow` have no bound, so draining cannot wait for them.
   */
  drain(): void {
    this.#connections.destroy();
    for (const exchange of this.#open) exchange.abort(statusErrors.serviceUnavailable('the server is shutting down'));
  }

  /** Resolves when the call has ended. A call may last for days. */
  async handle(exchange: Exchange, { service }: Route, target: Target, subresource: ConnectSubresource): Promise<void> {
    this.#open.add(exchange);
    try {
      const { query } = exchange.attributes;
      const location = await service.connect(exchange, target, subresource, {
        query,
        path: tailOf(exchange.attributes),
      });
      if (location.to === 'nothing') {
        if (exchange.webSocket !== undefined) return await relayMessages(exchange, Readable.from([]));
        return sendBytes(exchange, 200, 'text/plain', nothing);
      }
      const found = await findUpstream(location, this.#options.dialer, exchange.signal);
      const isPage = found.proxied && !found.agent;
      const call = isPage ? { ...found, identity: { 'x-forwarded-uri': exchange.attributes.path } } : found;
      const answered = await callUpstream(exchange, call, this.#options);
      if (answered.socket !== undefined) {
        checkUpgrade(exchange, answered, call);
        return await this.#tunnel(exchange, answered);
      }
      const headers = await judgeAnswer(exchange, answered.answer, call);
      if (exchange.webSocket !== undefined) return await relayMessages(exchange, answered.answer);
      return await (isPage && hasLinks(answered.answer)
        ? relayPage(exchange, answered.answer, headers, call)
        : relayAnswer(exchange, answered.answer, headers));
    } finally {
      this.#open.delete(exchange);
    }
  }

  /** Forwards a request to the server of an aggregated API. Watches and calls such as exec have no time limit. */
  async forward(exchange: Exchange, server: AggregatedServer): Promise<void> {
    if (!server.available)
      throw statusErrors.serviceUnavailable(`the server is currently unable to handle the request: ${server.label}`);
    const { request, attributes, upgrade } = exchange;
    const { verb, subresource, path, query } = attributes;
    if (upgrade !== undefined || verb === 'watch' || unbounded.has(subresource)) exchange.longRunning = true;
    this.#open.add(exchange);
    try {
      const upstream = await server.upstream();
      const call: UpstreamCall = {
        upstream,
        label: server.label,
        target: query.text === '' ? path : `${path}?${query.text}`,
        proxied: true,
        agent: false,
        identity: {
          ...identityHeaders(exchange.user),
          ...originHeaders(request, upstream, path, upgrade !== undefined),
          'audit-id': exchange.requestId,
        },
        ...(upgrade === undefined && !mayHaveBody(request) ? { connections: this.#connections } : {}),
      };
      const answered = await callUpstream(exchange, call, this.#options);
      if (answered.socket !== undefined) {
        checkUpgrade(exchange, answered, call);
        return await this.#tunnel(exchange, answered);
      }
      exchange.cacheControl = undefined;
      return await relayAnswer(exchange, answered.answer, judgeApiAnswer(answered.answer, call));
    } catch (error) {
      if (isStatusError(error, StatusReason.ServiceUnavailable)) server.failed();
      throw error;
    } finally {
      this.#open.delete(exchange);
    }
  }

  /** Connects client and upstream. The bytes after this point are in the protocol that both have negotiated. */
  async #tunnel(exchange: Exchange, { answer, socket, head }: UpstreamAnswer): Promise<void> {
    const { upgrade, response, requestId } = exchange;
    if (upgrade === undefined || socket === undefined) throw new Error('a tunnel needs two connections');
    const client: Socket = upgrade.socket;
    exchange.answered = true;
    response.statusCode = 101;
    exchange.audit?.started(101);
    response.detachSocket(client);
    const before = client.bytesWritten;
    client.write(switchingHead(answer, requestId), 'latin1');
    if (head !== undefined && head.length > 0) client.write(head);
    if (upgrade.head.length > 0) socket.write(upgrade.head);
    await joinSockets(client, socket, exchange.signal);
    exchange.sentBytes = client.bytesWritten - before;
  }
}

/** Streams a page to the client, with links that lead through the proxy. */
async function relayPage(
  exchange: Exchange,
  answer: IncomingMessage,
  headers: FlatHeaders,
  call: UpstreamCall,
): Promise<void> {
  const changed = new Set(['content-length', 'content-encoding', 'accept-ranges']);
  const kept: FlatHeaders = [];
  for (let i = 0; i < headers.length; i += 2) {
    const [name, value] = headers.slice(i, i + 2);
    if (name !== undefined && value !== undefined && !changed.has(String(name).toLowerCase())) kept.push(name, value);
  }
  const place = { prefix: prefixOf(exchange.attributes), origin: originOf(call.upstream) };
  await relayAnswer(exchange, answer, kept, linkRewriting(answer, place));
}

/**
 * Streams the response of the upstream to the client with backpressure. When the upstream breaks off, the connection of
 * the client is destroyed.
 *
 * @param transforms streams that the body passes
 */
export async function relayAnswer(
  exchange: Exchange,
  answer: IncomingMessage,
  headers: FlatHeaders,
  transforms: readonly Transform[] = [],
): Promise<void> {
  const { request, response, requestId } = exchange;
  headers.push('Audit-Id', requestId);
  if (exchange.closeConnection && request.httpVersionMajor === 1) headers.push('Connection', 'close');
  if (!sendHead(exchange, answer.statusCode ?? 502, headers)) {
    answer.destroy();
    return;
  }
  if (request.method === 'HEAD') {
    answer.destroy();
    response.end();
    return;
  }
  exchange.audit?.started(response.statusCode);
  // The headers of a followed log reach the client before the first line does.
  response.flushHeaders();
  try {
    const done = pipeline([answer, ...transforms, response]);
    answer.on('data', (chunk: Buffer) => {
      exchange.sentBytes += chunk.length;
    });
    await done;
  } catch {
    response.destroy();
  }
}

/** The subprotocols of a WebSocket for a log; without one its messages are binary. */
const logSubprotocols = ['binary.k8s.io', 'base64.binary.k8s.io'];

/** @throws StatusError 400 when the client offers other subprotocols only */
function logMessages({ headers }: IncomingMessage): MessageForm {
  const offered = subprotocolsOf(headers['sec-websocket-protocol'] ?? '');
  const subprotocol = offered.find((name) => logSubprotocols.includes(name));
  if (offered.length > 0 && subprotocol === undefined) {
    const sets = `client supports [${offered.join(' ')}], server accepts [${logSubprotocols.join(' ')}]`;
    throw statusErrors.badRequest(`unable to upgrade: unable to negotiate protocol: ${sets}`);
  }
  const binary = subprotocol !== 'base64.binary.k8s.io';
  return {
    subprotocol,
    binary,
    messages: (bytes) => [binary ? bytes : Buffer.from(bytes.toString('base64'), 'latin1')],
  };
}

/** Streams a log to the client as messages of a WebSocket. The first one is empty, as in kube-apiserver. */
async function relayMessages(exchange: Exchange, log: Readable): Promise<void> {
  try {
    const output = await openWebSocket(exchange, logMessages(exchange.request));
    if (output === undefined) return;
    output.write(nothing);
    log.on('data', (chunk: Buffer) => {
      exchange.sentBytes += chunk.length;
    });
    await pipeline(log, output).catch(() => {});
  } finally {
    log.destroy();
  }
}

/** Interval of TCP keep-alive probes on idle connections. */
const keepAliveMs = 30_000;

/**
 * Joins two connections until one of them ends. Bytes sent before the end are delivered. Each side is read only as fast
 * as the other accepts data. Resolves when both connections are closed. `signal` destroys both.
 */
export function joinSockets(a: Socket, b: Socket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    const cut = () => {
      a.destroy();
      b.destroy();
    };
    const closed = () => {
      open -= 1;
      if (open > 0) return;
      removeAbortListener(signal, cut);
      resolve();
    };
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      from.setTimeout(0);
      from.setNoDelay(true);
      from.setKeepAlive(true, keepAliveMs);
      // Node emits `close` after an error.
      from.on('error', () => {});
      from.pipe(to, { end: false });
      from.once('end', () => to.destroySoon());
      from.once('close', () => {
        to.destroySoon();
        closed();
      });
      if (from.destroyed) {
        to.destroySoon();
        closed();
      }
    }
    addAbortListener(signal, cut);
    if (signal.aborted) cut();
  });
}
