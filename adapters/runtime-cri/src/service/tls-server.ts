import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { RuntimeError } from '@keelson/container-runtime';
import { type Clock, type Logger, systemClock } from '@keelson/core';
import { isPinned, type PinnedTls, serverTls } from '../connection/cri-connection.ts';

export interface TlsDoorOptions {
  readonly host: string;
  /** 0: the system chooses. */
  readonly port: number;
  readonly tls: PinnedTls;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Takes the connections that are for calls (HTTP/2). */
  calls(socket: TLSSocket): void;
  /** Takes the others, which are for streams (HTTP/1.1). */
  streams(socket: TLSSocket): void;
}

/** A port that listens. */
export interface TlsDoor {
  readonly port: number;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Nobody has said yet who he is. */
const handshakeMs = 5000;
/** Connections of strangers that are being told so; more are cut off. */
const maxStrangers = 16;

/**
 * Listens at a TCP port and lets in whoever has the key of one certificate. Anybody else is told in a sentence that it
 * is nobody the service knows, and reaches nothing behind the door.
 *
 * @throws `AlreadyExists` when somebody listens there; the system's error for an address that cannot be used
 */
export async function openTlsDoor(options: TlsDoorOptions): Promise<TlsDoor> {
  const { host, tls, logger, clock = systemClock } = options;
  const refusals = new Refusals(logger, clock);
  const connections = new Set<TLSSocket>();
  let strangers = 0;
  const server = createServer({
    ...serverTls(tls),
    requestCert: true,
    // The comparison below is the stricter one, and lets the stranger be told.
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: handshakeMs,
  });
  const refuse = (socket: TLSSocket, shown: string) => {
    const sentence = `this service answers only whoever has the key it was started with: the client showed ${shown}`;
    refusals.add(sentence);
    if (strangers >= maxStrangers) {
      socket.destroy();
      return;
    }
    strangers += 1;
    socket.once('close', () => {
      strangers -= 1;
    });
    refuseStranger(socket, sentence);
  };
  server.on('secureConnection', (socket: TLSSocket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    socket.on('error', () => {});
    const shown = socket.getPeerCertificate();
    if (!isPinned(shown, tls.peer)) refuse(socket, 'raw' in shown ? 'another certificate' : 'no certificate');
    else if (socket.alpnProtocol === 'h2') options.calls(socket);
    else options.streams(socket);
  });
  server.on('tlsClientError', (error, socket) => {
    refusals.add(`the client did not speak TLS as it has to be spoken here: ${error.message}`);
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(taken(error, host, options.port)));
    server.listen(options.port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of connections) socket.destroy();
      await closed;
    },
  };
}

function taken(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code !== 'EADDRINUSE') return error;
  return new RuntimeError('AlreadyExists', `somebody listens at ${host}:${port} already`, { cause: error });
}

/** A stranger has this long to hear why it is refused. */
const refusalMs = 2000;

/** Answers whatever a connection of somebody else asks with one sentence, in the protocol it speaks, and ends it. */
export function refuseStranger(socket: TLSSocket, sentence: string): void {
  socket.setTimeout(refusalMs, () => socket.destroy());
  const tooLate = setTimeout(() => socket.destroy(), refusalMs);
  socket.once('close', () => clearTimeout(tooLate));
  if (socket.alpnProtocol === 'h2') refuseCalls(socket, sentence);
  else {
    const length = Buffer.byteLength(sentence) + 1;
    const head = `HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n`;
    // What it asks is read and thrown away: a socket that is closed with unread bytes loses the answer.
    socket.resume();
    socket.end(`${head}${sentence}\n`);
  }
}

function refuseCalls(socket: TLSSocket, sentence: string): void {
  const server = createHttp2Server({ settings: { maxConcurrentStreams: 1 } });
  server.on('sessionError', () => {});
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    const refusal = { 'grpc-status': String(status.UNAUTHENTICATED), 'grpc-message': sentence };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...refusal }, { endStream: true });
    stream.session?.close();
  });
  server.emit('connection', socket);
}

/** Whoever is refused may come again at once: more lines than this would be theirs to fill a disk with. */
const periodMs = 60_000;

/** Logs refusals of connections, at most one line a minute. */
export class Refusals {
  readonly #logger: Logger;
  readonly #clock: Clock;
  #loggedAt: number | undefined;
  #unlogged = 0;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  add(reason: string): void {
    const now = this.#clock.monotonic();
    if (this.#loggedAt !== undefined && now - this.#loggedAt < periodMs) {
      this.#unlogged += 1;
      return;
    }
    this.#logger.warn('connection refused', {
      reason,
      ...(this.#unlogged > 0 && { othersSinceLastLine: this.#unlogged }),
    });
    this.#loggedAt = now;
    this.#unlogged = 0;
  }
}
