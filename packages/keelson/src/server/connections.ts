import { IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2Stream, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { TokenBucket } from '@keelson/client';
import { type Logger, systemClock } from '@keelson/core/runtime';
import { type ConnectionLimits, sweepMs } from '../config/connection-limits.ts';

/** Connections accepted beyond the limit for health checks only. */
const extraConnections = 16;
/** Greatest number of connections examined to find an idle one. */
const scanned = 256;
/** Least interval of log lines about the limit. */
const warnMs = 60_000;

const healthPath = /^\/(?:healthz|livez|readyz)(?:[/?]|$)/;
const busyText = 'Too many requests, please try again later.\n';

/** One connection and its state. */
class Connection {
  /** The TCP socket below TLS. */
  readonly socket: Socket;
  readonly address: string;
  /** Accepted beyond the limit: one health check is answered, other requests are rejected. */
  readonly extra: boolean;
  /** Time of the accept, or approximate start of the idle period. */
  idleSince: number;
  /** True when a request has begun since the connection was last examined as a candidate for closing. */
  used = false;
  /** The last HTTP/1.1 response; responses of a connection are sent in order. */
  response: ServerResponse | undefined;
  session: ServerHttp2Session | undefined;
  /** True when the first frame of the client has been received. */
  greeted = false;
  /** Time at which the end of the session was detected; 0 before. */
  endedAt = 0;
  /** HTTP/2: time of the last PING or of the session's start, and whether its acknowledgement is pending. */
  pingedAt = 0;
  pingPending = false;
  /** HTTP/2: open streams with the time since which a complete response waits for the client, or 0. */
  readonly streams = new Map<Http2Stream, number>();
  /** HTTP/1.1: time since which a complete response waits for the client, or 0. */
  unreadSince = 0;
  /** True after a switch to another protocol. */
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
 * Limits the number of a server's connections and the time they spend in each state of their protocol. Limits that Node
 * enforces itself (TLS handshake, late headers, idle HTTP/1.1 connections) are set where the server is created.
 *
 * At the limit an idle connection is closed for a new one; connections without a request since the previous such
 * examination are closed first. When all are busy, a few more are accepted for health checks.
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

  /** Tracks the connections of a server that does not listen yet. */
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
    // Not injected: the limits are on the time of real sockets, like those that Node enforces itself.
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
    // The version of the request line can be 2.0 on a connection of HTTP/1.
    if (request instanceof IncomingMessage) {
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
    // A connection arrives a second time when its request is served without the upgrade that it asks for.
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

  /** After the handshake requests arrive on another socket object than the accepted one. */
  #secured(socket: Socket): void {
    const connection = this.#byPeer.get(peerOf(socket));
    if (connection === undefined || this.#bySocket.has(socket)) return;
    connection.idleSince = performance.now();
    this.#bySocket.set(socket, connection);
  }

  #opened(session: ServerHttp2Session): void {
    const { remoteAddress, remotePort } = session.socket;
    const connection = this.#byPeer.get(peerOf({ remoteAddress, remotePort }));
    this.#trackStreams(session, connection);
    if (connection === undefined) return;
    connection.session = session;
    connection.idleSince = performance.now();
    connection.pingedAt = connection.idleSince;
    this.#bySession.set(session, connection);
    session.once('remoteSettings', () => {
      connection.greeted = true;
    });
  }

  /**
   * Records the streams of a session, and closes the session when its client resets more of them than the limits allow
   * (CVE-2023-44487). The bound of Node itself, 1,000 resets and 33 per second, is not configurable in version 20.
   */
  #trackStreams(session: ServerHttp2Session, connection: Connection | undefined): void {
    const allowed = new TokenBucket(systemClock, this.#limits.streamResetsPerSecond, this.#limits.streamResetBurst);
    // One function for all streams of the session: a stream has a listener, and no closure.
    const closed = function (this: Http2Stream): void {
      if (connection?.streams.delete(this) && connection.streams.size === 0) connection.idleSince = performance.now();
      if (!this.aborted || allowed.tryTake() || session.closed || session.destroyed) return;
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      session.destroy();
    };
    session.on('stream', (stream) => {
      stream.on('close', closed);
      if (connection === undefined) return;
      connection.used = true;
      connection.streams.set(stream, 0);
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
      // Also after a GOAWAY of the client: the session has ended, and its socket waits for the client to close it.
      if (connection.endedAt === 0) connection.endedAt = now;
      else if (now - connection.endedAt > lingerMs) socket.destroy();
    } else if (!connection.greeted) {
      if (now - connection.idleSince > handshakeMs) socket.destroy();
    } else if (now - connection.idleSince > (connection.extra ? handshakeMs : idleMs)) session.close();
  }

  /**
   * Node does not always detect that the peer of a session has closed its connection, for example when Node has stopped
   * reading from it. The streams of such a session would stay open.
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

  /** Does what Node does without a listener, except for unused connections, which have no late headers. */
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
 * The idle connection that has been in the set longest. Connections used since the last examination are moved to its
 * end.
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
