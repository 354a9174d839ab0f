import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { RuntimeError } from '@keelson/container-runtime';
import { type StreamLimits, type StreamUpgrade, UpgradeRefused } from '@keelson/container-streams';
import { type Clock, systemClock } from '@keelson/core';

/** What is done with the connection of a caller that has a token. */
export interface StreamOffer {
  /** `exec`, `attach` or `portforward`: part of the address, for those who read logs. */
  readonly kind: string;
  /** @throws UpgradeRefused before the connection is taken over */
  serve(upgrade: StreamUpgrade, query: URLSearchParams, limits: StreamLimits): Promise<void>;
}

/** Connections without traffic are ended after this time, as kubelet does by default. */
const idleMs = 4 * 60 * 60 * 1000;
/** Whoever has a token may use it once within this time. */
const tokenLifeMs = 60_000;
/** More would be somebody who asks and never comes. */
const maxTokens = 1000;

export interface StreamServerOptions {
  readonly clock?: Clock;
  /** Where connections come in that are handed over by {@link StreamServer.connected}. Absent: it listens itself. */
  readonly origin?: () => string;
}

/**
 * Gives out addresses of streams, each good for one use within a minute. The address is the secret: it has a token of
 * 128 random bits. On its own it listens at a port of the loopback that the system chooses, from the first address on.
 */
export class StreamServer {
  readonly #clock: Clock;
  readonly #origin: (() => string) | undefined;
  readonly #server = createServer((request, response) => {
    const offer = this.#take(request);
    response
      .writeHead(offer === undefined ? 404 : 400)
      .end(offer && 'streams need an upgrade to a WebSocket or to SPDY/3.1\n');
  });
  readonly #offers = new Map<string, StreamOffer>();
  readonly #sockets = new Set<Duplex>();
  #listening: Promise<Server> | undefined;
  #closed = false;

  constructor({ clock = systemClock, origin }: StreamServerOptions = {}) {
    this.#clock = clock;
    this.#origin = origin;
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Takes a connection that came in elsewhere. */
  connected(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  /** The address at which the stream is to be had. @throws `Unavailable` */
  async offer(offer: StreamOffer): Promise<string> {
    if (this.#closed) throw new RuntimeError('Unavailable', 'the service ends');
    if (this.#offers.size >= maxTokens)
      throw new RuntimeError('Unavailable', 'too many streams were asked for and not used');
    const origin = await this.#place();
    const token = randomBytes(16).toString('base64url');
    this.#offers.set(token, offer);
    this.#clock.after(tokenLifeMs, () => this.#offers.delete(token));
    return `${origin}/cri/${offer.kind}/${token}`;
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#offers.clear();
    for (const socket of this.#sockets) socket.destroy();
    const server = await this.#listening;
    if (server === undefined) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #place(): Promise<string> {
    if (this.#origin !== undefined) return this.#origin();
    this.#listening ??= this.#listen();
    const { port } = (await this.#listening).address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  #listen(): Promise<Server> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve(server));
    });
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {});
    const offer = this.#take(incoming);
    if (offer === undefined) {
      refuse(socket, new UpgradeRefused(404, 'there is no such stream'));
      return;
    }
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    const { searchParams } = new URL(incoming.url ?? '', 'http://127.0.0.1');
    const limits = { clock: this.#clock, idleMs };
    offer.serve({ incoming, socket, head, accepted: () => {} }, searchParams, limits).catch((error: unknown) => {
      if (error instanceof UpgradeRefused) refuse(socket, error);
      else socket.destroy();
    });
  }

  /** A token is used up by whatever is done with it. */
  #take({ url = '' }: IncomingMessage): StreamOffer | undefined {
    const [, kind, token = ''] = /^\/cri\/([a-z]+)\/([\w-]+)(?:\?|$)/.exec(url) ?? [];
    const offer = this.#offers.get(token);
    if (offer === undefined || offer.kind !== kind) return undefined;
    this.#offers.delete(token);
    return offer;
  }
}

function refuse(socket: Duplex, { status, message, headers }: UpgradeRefused): void {
  const lines = Object.entries({
    ...headers,
    Connection: 'close',
    'Content-Length': String(Buffer.byteLength(message)),
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${message}`);
}
