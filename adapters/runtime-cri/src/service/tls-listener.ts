import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { RuntimeError } from '@keelson/container-runtime';
import { type Clock, type Logger, systemClock } from '@keelson/core/runtime';
import { isPinned, type PinnedTls, serverTls } from '../connection/cri-connection.ts';

export interface TlsListenerOptions {
  readonly host: string;
  /** TCP port to listen at; 0 selects a free port. */
  readonly port: number;
  readonly tls: PinnedTls;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Receives the connections for calls (HTTP/2). */
  calls(socket: TLSSocket): void;
  /** Receives the connections for streams (HTTP/1.1). */
  streams(socket: TLSSocket): void;
}

/** A listening TCP port. */
export interface TlsListener {
  readonly port: number;
  /** Stops listening and closes all connections. */
  close(): Promise<void>;
}

/** Time limit of the TLS handshake. */
const handshakeTimeoutMs = 5000;
/** Limit of rejected connections that receive an error message at the same time; others are closed at once. */
const maxRejections = 16;

/**
 * Listens at a TCP port with TLS and accepts only clients with the pinned certificate. All other clients receive an
 * error message, and their connections are closed.
 *
 * @throws `AlreadyExists` when another process listens at the port; the error of the system when the address is not
 * available
 */
export async function listenTls(options: TlsListenerOptions): Promise<TlsListener> {
  const { host, tls, logger, clock = systemClock } = options;
  const rejectionLog = new RejectionLog(logger, clock);
  const connections = new Set<TLSSocket>();
  let rejections = 0;
  const server = createServer({
    ...serverTls(tls),
    requestCert: true,
    // The certificate is compared with the pinned one after the handshake, so that a rejected client receives an error.
    rejectUnauthorized: false,
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: handshakeTimeoutMs,
  });
  const reject = (socket: TLSSocket, presented: string) => {
    const message = `the client certificate is not the pinned certificate: the client presented ${presented}`;
    rejectionLog.add(message);
    if (rejections >= maxRejections) {
      socket.destroy();
      return;
    }
    rejections += 1;
    socket.once('close', () => {
      rejections -= 1;
    });
    rejectConnection(socket, message);
  };
  server.on('secureConnection', (socket: TLSSocket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    socket.on('error', () => {});
    const presented = socket.getPeerCertificate();
    if (!isPinned(presented, tls.peer)) reject(socket, 'raw' in presented ? 'another certificate' : 'no certificate');
    else if (socket.alpnProtocol === 'h2') options.calls(socket);
    else options.streams(socket);
  });
  server.on('tlsClientError', (error, socket) => {
    rejectionLog.add(`the TLS handshake failed: ${error.message}`);
    socket.destroy();
  });
  await new Promise<void>((resolve, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) => fail(listenError(error, host, options.port)));
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

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code !== 'EADDRINUSE') return error;
  return new RuntimeError('AlreadyExists', `another process already listens at ${host}:${port}`, { cause: error });
}

/** Time limit for sending the error message to a rejected client. */
const rejectionTimeoutMs = 2000;

/** Responds to a request of a rejected client with an error message in its protocol, and closes the connection. */
export function rejectConnection(socket: TLSSocket, message: string): void {
  socket.setTimeout(rejectionTimeoutMs, () => socket.destroy());
  // Not injected: time limit of a real socket.
  const deadline = setTimeout(() => socket.destroy(), rejectionTimeoutMs);
  socket.once('close', () => clearTimeout(deadline));
  if (socket.alpnProtocol === 'h2') rejectCalls(socket, message);
  else {
    const length = Buffer.byteLength(message) + 1;
    const headers = `Connection: close\r\nContent-Type: text/plain\r\nContent-Length: ${length}`;
    // The request is read and discarded: closing a socket with unread bytes would also discard the response.
    socket.resume();
    socket.end(`HTTP/1.1 403 Forbidden\r\n${headers}\r\n\r\n${message}\n`);
  }
}

function rejectCalls(socket: TLSSocket, message: string): void {
  const server = createHttp2Server({ settings: { maxConcurrentStreams: 1 } });
  server.on('sessionError', () => {});
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    const failure = { 'grpc-status': String(status.UNAUTHENTICATED), 'grpc-message': message };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...failure }, { endStream: true });
    stream.session?.close();
  });
  server.emit('connection', socket);
}

/** Minimum interval of log entries, because rejected clients may reconnect at once and fill the disk. */
const logIntervalMs = 60_000;

/** Logs rejected connections, at most once a minute. */
export class RejectionLog {
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
    if (this.#loggedAt !== undefined && now - this.#loggedAt < logIntervalMs) {
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
