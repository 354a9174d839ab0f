import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import {
  addAbortListener,
  type Clock,
  type ConnectSubresource,
  type RequestAttributes,
  removeAbortListener,
  statusErrors,
  type Target,
} from '@keelson/core';
import type { Exchange } from '../exchange/exchange.ts';
import type { HttpLimits, NodeDialer } from '../exchange/options.ts';
import { type FlatHeaders, sendBytes, sendHead } from '../exchange/send.ts';
import type { Route } from '../resource/route.ts';
import { switchingHead } from './headers.ts';
import { checkUpgrade, judgeAnswer } from './judge-answer.ts';
import { callUpstream, findUpstream, type UpstreamAnswer } from './upstream.ts';

export interface ConnectHandlerOptions {
  readonly clock: Clock;
  readonly limits: HttpLimits;
  /** Absent: no node can be reached. */
  readonly dialer: NodeDialer | undefined;
}

const nothing = Buffer.alloc(0);

/** What stands behind the subresource in the path, as it was sent. */
function tailOf({ path, remainder }: RequestAttributes): string {
  if (remainder.length === 0) return '/';
  return `/${path.split('/').slice(-remainder.length).join('/')}`;
}

/** Passes calls on to where their subresource leads, and knows which are open. */
export class ConnectHandler {
  readonly #options: ConnectHandlerOptions;
  readonly #open = new Set<Exchange>();

  constructor(options: ConnectHandlerOptions) {
    this.#options = options;
  }

  /** Ends every open call: nobody can say how long it would go on. */
  drain(): void {
    for (const exchange of this.#open) exchange.abort(statusErrors.serviceUnavailable('the server is shutting down'));
  }

  /** Resolves when the call is over, which may be days later. */
  async handle(exchange: Exchange, { service }: Route, target: Target, subresource: ConnectSubresource): Promise<void> {
    this.#open.add(exchange);
    try {
      const { query } = exchange.attributes;
      const location = await service.connect(exchange, target, subresource, {
        query,
        path: tailOf(exchange.attributes),
      });
      if (location.to === 'nothing') return sendBytes(exchange, 200, 'text/plain', nothing);
      const call = await findUpstream(location, this.#options.dialer, exchange.signal);
      const answered = await callUpstream(exchange, call, this.#options);
      if (answered.socket !== undefined) {
        checkUpgrade(exchange, answered, call);
        return await this.#tunnel(exchange, answered);
      }
      return await relayAnswer(exchange, answered.answer, await judgeAnswer(exchange, answered.answer, call));
    } finally {
      this.#open.delete(exchange);
    }
  }

  /** From here on the connection carries what it likes. */
  async #tunnel(exchange: Exchange, { answer, socket, head }: UpstreamAnswer): Promise<void> {
    const { upgrade, response, requestId } = exchange;
    if (upgrade === undefined || socket === undefined) throw new Error('a tunnel needs two connections');
    const client: Socket = upgrade.socket;
    exchange.answered = true;
    response.statusCode = 101;
    response.detachSocket(client);
    const before = client.bytesWritten;
    client.write(switchingHead(answer, requestId), 'latin1');
    if (head !== undefined && head.length > 0) client.write(head);
    if (upgrade.head.length > 0) socket.write(upgrade.head);
    await joinSockets(client, socket, exchange.signal);
    exchange.sentBytes = client.bytesWritten - before;
  }
}

/**
 * Passes an answer on as it comes in, no faster than the client takes it. One that breaks off breaks off for the client
 * too.
 */
export async function relayAnswer(exchange: Exchange, answer: IncomingMessage, headers: FlatHeaders): Promise<void> {
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
  // Whoever follows something silent knows at once that it was found.
  response.flushHeaders();
  try {
    const done = pipeline(answer, response);
    answer.on('data', (chunk: Buffer) => {
      exchange.sentBytes += chunk.length;
    });
    await done;
  } catch {
    response.destroy();
  }
}

/** How often a silent connection is asked by the system whether its other end is still there. */
const keepAliveMs = 30_000;

/**
 * Joins two connections until one of them ends; what it has sent before still arrives at the other. Each is read only
 * as fast as the other takes it. Resolves when both are closed. Aborting ends both.
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
      // An error is followed by `close`.
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
