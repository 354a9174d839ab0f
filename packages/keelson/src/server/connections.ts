import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2Stream, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Logger } from '@keelson/core';
import { type ConnectionLimits, sweepMs } from '../config/connection-limits.ts';

/** Connections beyond the limit that may be open at the same time, for health checks alone. */
const extraConnections = 16;
/** Connections examined at most to find an idle one. */
const scanned = 256;
/** Least distance of two log lines about the limit. */
const warnMs = 60_000;

const healthPath = /^\/(?:healthz|livez|readyz)(?:[/?]|$)/;
const busyText = 'Too many requests, please try again later.\n';

/** One connection and what is known about its use. */
class Connection {
  /** Beneath TLS. */
  readonly socket: Socket;
  readonly address: string;
  /** Beyond the limit: one health check is answered, anything else is refused. */
  readonly extra: boolean;
  /** When it was accepted, or began to be idle as far as that is known. */
  idleSince: number;
  /** A request has begun since the connection was last examined for room. */
  used = false;
  /** The last answer over HTTP/1.1; answers of one connection are sent in order. */
  response: ServerResponse | undefined;
  session: ServerHttp2Session | undefined;
  /** The client's first frame has arrived. */
  greeted = false;
  /** When its session was found ended; 0 before. */
  endedAt = 0;
  /** HTTP/2: when the last PING was sent, or the session was opened, and whether its answer is missing. */
  pingedAt = 0;
  pingPending = false;
  /** HTTP/2: open streams, and since when their complete answers wait for the client; 0 when they do not. */
  readonly streams = new Map<Http2Stream, number>();
  /** The same of an answer over HTTP/1.1. */
  unreadSince = 0;
  /** Has left HTTP. */
  upgraded = false;

  constructor(socket: Socket, address: string, extra: boolean, now: number) {
    this.socket = socket;
    this.address = address;
    this.extra = extra;
    this.idleSince = now;
  }

  get busy(): boolean {
    return this.upgraded || this.streams.size > 0 || (this.response !== undefined && !this.response.writableFinished);
  }
}

/**
 * The connections of a server: bounds their number and the time they spend in each state of their protocol. What Node
 * bounds itself (the TLS handshake, late headers, HTTP/1.1 connections between two requests) is set where the server is
 * made.
 *
 * When the limit is reached an idle connection is closed in favour of a new one, those without a request since the last
 * such occasion first. When all are busy, a few more are accepted, whose health checks are answered.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #logger: Logger;
  readonly #all = new Set<Connection>();
  readonly #byAddress = new Map<string, Set<Connection>>();
  readonly #bySocket = new WeakMap<Socket, Connection>();
  readonly #bySession = new WeakMap<object, Connection>();
  readonly #byPeer = new Map<string, Connection>();
  #extra = 0;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(limits: ConnectionLimits, logger: Logger) {
    this.#limits = limits;
    this.#logger = logger;
  }

  /** Begins to track the connections of a server that does not listen yet. */
  attach(server: Server, secure: boolean): void {
    server.on('connection', (socket: Socket) => this.#accept(socket));
    if (secure) {
      server.on('secureConnection', (socket: Socket) => this.#secured(socket));
      server.on('session', (session: ServerHttp2Session) => this.#opened(session));
    }
    if (server.listenerCount('upgrade') > 0) {
      server.prependListener('upgrade', ({ socket }: IncomingMessage) => {
        const connection = this.#bySocket.get(socket);
        if (connection !== undefined) connection.upgraded = true;
      });
    }
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.#clientError(error, socket));
    const timer = setInterval(() => this.#sweep(), sweepMs);
    timer.unref();
    server.once('close', () => clearInterval(timer));
  }

  /** Passes on to `listener` the requests that their connections may send; rejects the others with 429. */
  admitted(listener: RequestListener): RequestListener {
    return (request, response) => {
      if (this.#admit(request, response)) listener(request, response);
    };
  }

  /** Records a request for its connection; answers it and returns false when the connection may not send it. */
  #admit(request: IncomingMessage, response: ServerResponse): boolean {
    let connection: Connection | undefined;
    if (request.httpVersionMajor === 1) {
      connection = this.#bySocket.get(request.socket);
      if (connection === undefined) return true;
      connection.response = response;
      connection.used = true;
      connection.upgraded = false;
    } else if (this.#extra > 0) {
      const { session } = (request as unknown as Http2ServerRequest).stream;
      connection = session && this.#bySession.get(session);
    }
    if (connection?.extra !== true) return true;
    const { session } = connection;
    if (session === undefined) response.shouldKeepAlive = false;
    else response.once('close', () => session.close());
    if (healthPath.test(request.url ?? '')) return true;
    response.writeHead(429, { 'Content-Type': 'text/plain; charset=utf-8', 'Retry-After': '1' });
    response.end(busyText);
    return false;
  }

  /** Closes every connection at once. */
  destroy(): void {
    for (const { socket } of this.#all) socket.destroy();
  }

  #accept(socket: Socket): void {
    // A request that is served although it asked to leave HTTP passes its connection to the server once more.
    if (this.#bySocket.has(socket)) return;
    const address = socket.remoteAddress;
    if (address === undefined) return void socket.destroy();
    const own = this.#byAddress.get(address) ?? new Set();
    const { connections, connectionsPerAddress } = this.#limits;
    const full = own.size >= connectionsPerAddress ? own : this.#all.size >= connections ? this.#all : undefined;
    let extra = false;
    if (full !== undefined) {
      this.#warn(address);
      const idle = idleOf(full);
      if (idle !== undefined) {
        this.#remove(idle);
        idle.socket.destroy();
      } else if (this.#extra < extraConnections) extra = true;
      else return void socket.destroy();
    }
    const connection = new Connection(socket, address, extra, performance.now());
    if (extra) this.#extra += 1;
    this.#all.add(connection);
    this.#byAddress.set(address, own.add(connection));
    this.#bySocket.set(socket, connection);
    const peer = peerOf(socket);
    this.#byPeer.set(peer, connection);
    socket.once('close', () => {
      if (this.#byPeer.get(peer) === connection) this.#byPeer.delete(peer);
      this.#remove(connection);
    });
  }

  #remove(connection: Connection): void {
    if (!this.#all.delete(connection)) return;
    if (connection.extra) this.#extra -= 1;
    const own = this.#byAddress.get(connection.address);
    own?.delete(connection);
    if (own?.size === 0) this.#byAddress.delete(connection.address);
  }

  /** The handshake is done: requests arrive on another socket object than the one that was accepted. */
  #secured(socket: Socket): void {
    const connection = this.#byPeer.get(peerOf(socket));
    if (connection === undefined || this.#bySocket.has(socket)) return;
    connection.idleSince = performance.now();
    this.#bySocket.set(socket, connection);
  }

  #opened(session: ServerHttp2Session): void {
    const { remoteAddress, remotePort } = session.socket;
    const connection = this.#byPeer.get(peerOf({ remoteAddress, remotePort }));
    if (connection === undefined) return;
    connection.session = session;
    connection.idleSince = performance.now();
    connection.pingedAt = connection.idleSince;
    this.#bySession.set(session, connection);
    session.once('remoteSettings', () => {
      connection.greeted = true;
    });
    session.on('stream', (stream) => {
      connection.used = true;
      connection.streams.set(stream, 0);
      stream.once('close', () => {
        connection.streams.delete(stream);
        if (connection.streams.size === 0) connection.idleSince = performance.now();
      });
    });
  }

  #sweep(): void {
    const now = performance.now();
    for (const connection of this.#all) {
      if (connection.session !== undefined) this.#sweepHttp2(connection, connection.session, now);
      else this.#sweepHttp1(connection, now);
    }
  }

  #sweepHttp2(connection: Connection, session: ServerHttp2Session, now: number): void {
    const { idleMs, handshakeMs, lingerMs, unreadAnswerMs } = this.#limits;
    const { socket, streams } = connection;
    for (const [stream, unreadSince] of streams) {
      if (!stream.writableEnded || stream.writableFinished) continue;
      if (unreadSince === 0) streams.set(stream, now);
      else if (now - unreadSince > unreadAnswerMs) stream.destroy();
    }
    if (connection.greeted && !session.destroyed) this.#ping(connection, session, now);
    if (streams.size > 0) return;
    if (session.closed || session.destroyed) {
      // Also after GOAWAY of the client: the session is over, and its socket waits for the client to close it.
      if (connection.endedAt === 0) connection.endedAt = now;
      else if (now - connection.endedAt > lingerMs) socket.destroy();
    } else if (!connection.greeted) {
      if (now - connection.idleSince > handshakeMs) socket.destroy();
    } else if (now - connection.idleSince > (connection.extra ? handshakeMs : idleMs)) session.close();
  }

  /**
   * Node does not always notice that the peer of a session has closed its connection, for example when it has stopped
   * to read from it. The streams of such a session, watches among them, would stay open.
   */
  #ping(connection: Connection, session: ServerHttp2Session, now: number): void {
    if (now - connection.pingedAt <= this.#limits.pingMs) return;
    if (connection.pingPending) return void connection.socket.destroy();
    connection.pingedAt = now;
    connection.pingPending = session.ping(() => {
      connection.pingPending = false;
    });
  }

  #sweepHttp1(connection: Connection, now: number): void {
    const { idleMs, handshakeMs, unreadAnswerMs } = this.#limits;
    const { response, socket } = connection;
    if (connection.upgraded) return;
    if (response === undefined) {
      if (now - connection.idleSince > (connection.extra ? handshakeMs : idleMs)) socket.destroy();
    } else if (response.writableFinished) {
      connection.response = undefined;
      connection.unreadSince = 0;
      connection.idleSince = now;
    } else if (!response.writableEnded) connection.unreadSince = 0;
    else if (connection.unreadSince === 0) connection.unreadSince = now;
    else if (now - connection.unreadSince > unreadAnswerMs) socket.destroy();
  }

  /** What Node does without a listener, but for connections that have not been used yet: their headers are not late. */
  #clientError({ code }: NodeJS.ErrnoException, socket: Socket): void {
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && socket.bytesRead === 0) return;
    const connection = this.#bySocket.get(socket);
    const answered =
      connection?.response !== undefined && !connection.response.writableFinished && connection.response.headersSent;
    if (socket.writable && connection !== undefined && !answered) {
      socket.write(`HTTP/1.1 ${errorLines.get(code ?? '') ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
    }
    socket.destroy();
  }

  #warn(address: string): void {
    const now = performance.now();
    if (now - this.#warnedAt < warnMs) return;
    this.#warnedAt = now;
    const { connections, connectionsPerAddress } = this.#limits;
    this.#logger.warn('connection limit reached', {
      address,
      open: this.#all.size,
      connections,
      connectionsPerAddress,
    });
  }
}

const errorLines: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', '413 Payload Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
]);

function peerOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * An idle connection, the one that has been in the set for longest first; those in use since they were last examined
 * are put at its end.
 */
function idleOf(connections: Set<Connection>): Connection | undefined {
  let left = Math.min(scanned, connections.size * 2);
  for (const connection of connections) {
    if (left-- === 0) return undefined;
    if (!connection.busy && !connection.used) return connection;
    connection.used = false;
    connections.delete(connection);
    connections.add(connection);
  }
  return undefined;
}
