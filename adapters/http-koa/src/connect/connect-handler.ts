import type { Socket } from 'node:net';
import { type Clock, type ConnectSubresource, type RequestAttributes, statusErrors, type Target } from '@keelson/core';
import { sendBytes } from '../answer/send.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpLimits } from '../options.ts';
import type { Route } from '../resource/route.ts';
import { switchingHead } from './answer-headers.ts';
import { callUpstream, type UpstreamAnswer } from './call-upstream.ts';
import { findUpstream } from './find-upstream.ts';
import { checkUpgrade, judgeAnswer } from './judge-answer.ts';
import type { NodeDialer } from './node-dialer.ts';
import { relayAnswer } from './relay-answer.ts';
import { joinSockets } from './tunnel.ts';

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
