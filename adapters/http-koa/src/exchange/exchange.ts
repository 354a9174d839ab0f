import { getEventListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerResponse } from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RequestContext, StatusError, UserInfo } from '@keelson/core';
import type { RequestAttributes, RequestAudit } from '@keelson/core/internal';
import { eventLoopTurns } from '@keelson/core/runtime';
import { requireAllowed } from './filters.ts';
import type { MetricsResource } from './metrics.ts';
import { type Authorize, anonymousUser, mastersOnly } from './options.ts';
import type { Seat } from './priority-levels.ts';
import { WarningHeaders } from './warning-headers.ts';

/** A connection whose client requests an upgrade to another protocol. */
export interface UpgradeRequest {
  readonly socket: Socket;
  /** Bytes received after the head of the request. */
  readonly head: Buffer;
}

const truthy: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const falsy: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/** A user (undefined without credentials), a promise of it, or the error for invalid credentials. */
export type Authentication =
  | { readonly user: UserInfo | undefined | Promise<UserInfo | undefined> }
  | { readonly error: unknown };

/**
 * One request and its response, passed through all filters and handlers. It is also the {@link RequestContext} of the
 * operations that the request causes. Members that most requests do not use are created on first use.
 */
export class Exchange implements RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly attributes: RequestAttributes;
  readonly requestId: string;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
  /** Monotonic milliseconds at which the request times out. Extended while a long response makes progress. */
  deadlineAt: number;
  user: UserInfo = anonymousUser;
  /**
   * Decides about further verbs of the request, such as the create of a PUT; set when the request itself has been
   * authorized.
   */
  authorizer: Authorize = mastersOnly;
  /** The audit record; undefined when the request is not recorded. */
  audit: RequestAudit | undefined;
  /** The resource in metrics; undefined for paths of the resource API at which none is registered. */
  metricsResource: MetricsResource | undefined;
  /** The subresource in metrics: one of the kind, or empty. */
  metricsSubresource = '';
  /** True for watches and connect requests, which are exempt from deadlines. */
  longRunning = false;
  /** Set for a request that may switch to another protocol. */
  upgrade: UpgradeRequest | undefined;
  /** Set for a request whose response is sent as messages of a WebSocket. */
  webSocket: UpgradeRequest | undefined;
  /** Index among the running requests, -1 when the request is not running. Owned by `RunningRequests`. */
  place = -1;
  /**
   * The seat that the request occupies in flow control; undefined before the request is admitted. Owned by `Pipeline`.
   */
  seat: Seat | undefined;
  /** The outcome of the authentication; undefined before it began. Owned by `Pipeline`. */
  authentication: Authentication | undefined;
  /** Milliseconds in which the request waited in a queue and for admission webhooks, for metrics. */
  waitedMs = 0;
  /** Bytes of the response body sent so far, for metrics. */
  sentBytes = 0;
  /** True when the rest of the request cannot be read. The connection is closed after the response. */
  closeConnection = false;
  /** Value of the `Cache-Control` header; undefined when the response sets its own. */
  cacheControl: string | undefined = 'no-cache, private';
  /** Value of the `Allow` header of a 405. */
  allow: string | undefined = undefined;
  /** True when a response has been started. Later attempts to respond are ignored. */
  answered = false;
  /** True when the whole response is known, although it may not have been written yet. */
  complete = false;
  #borrowed: BorrowedSignal | undefined;
  #abortedWith: StatusError | undefined;
  #warnings: WarningHeaders | undefined;
  #warn: ((text: string) => void) | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    attributes: RequestAttributes,
    requestId: string,
    startedAt: number,
    deadlineAt: number,
  ) {
    this.request = request;
    this.response = response;
    this.attributes = attributes;
    this.requestId = requestId;
    this.startedAt = startedAt;
    this.deadlineAt = deadlineAt;
  }

  get userAgent(): string {
    return this.request.headers['user-agent'] ?? '';
  }

  /**
   * Whether the client prefers indented JSON: see docs/reference/api-rules.md#query-parameters. A value of `pretty`
   * that is not a boolean is ignored.
   *
   * @param inClause the `pretty` parameter of the chosen clause of the Accept header
   */
  wantsPretty(inClause: boolean | undefined): boolean {
    const value = this.attributes.query.first('pretty');
    if (value !== undefined) {
      if (truthy.has(value)) return true;
      if (falsy.has(value)) return false;
    }
    if (inClause !== undefined) return inClause;
    const agent = this.userAgent;
    switch (agent.charCodeAt(0)) {
      case 0x63: // c
        return agent.startsWith('curl');
      case 0x57: // W
        return agent.startsWith('Wget');
      case 0x4d: // M
        return agent.startsWith('Mozilla/5.0');
      default:
        return false;
    }
  }

  /**
   * Aborted when the client has disconnected or the deadline has passed. It must not be used after the end of the
   * request.
   */
  get signal(): AbortSignal {
    if (this.#borrowed === undefined) {
      this.#borrowed = borrowSignal(this.request, this.response);
      if (this.#abortedWith !== undefined) this.#borrowed.controller.abort(this.#abortedWith);
    }
    return this.#borrowed.controller.signal;
  }

  /** Authorizes the request for another verb. An arrow function, because callers destructure the context. */
  get authorize(): (verb: string) => Promise<void> {
    return async (verb) => {
      const attributes = { ...this.attributes, verb };
      requireAllowed(await this.authorizer(attributes, this.user), attributes, this.user);
    };
  }

  /** Adds a text to the `Warning` headers. An arrow function, because callers destructure the context. */
  get warn(): (text: string) => void {
    this.#warn ??= (text) => {
      this.#warnings ??= new WarningHeaders();
      this.#warnings.add(text);
    };
    return this.#warn;
  }

  annotate(key: string, value: string): void {
    this.audit?.annotate(key, value);
  }

  waited(ms: number): void {
    this.waitedMs += ms;
  }

  /** Values of the `Warning` headers; undefined when there are none. */
  warningHeader(): string[] | undefined {
    return this.#warnings?.values();
  }

  /** Aborts the operation; `reason` becomes the reason of {@link signal} and the response. */
  abort(reason?: StatusError): void {
    this.#abortedWith = reason;
    this.#borrowed?.controller.abort(reason);
  }

  /** Releases the signal at the end of the request. */
  release(): void {
    this.#borrowed?.release();
  }

  /** The reason why the server aborted the request. */
  get abortedWith(): StatusError | undefined {
    return this.#abortedWith;
  }
}

/** Header names and values in one flat list, the fastest form for `writeHead`. */
export type FlatHeaders = (string | number | string[])[];

/** Headers of every response. `length` is undefined for streams. */
export function answerHeaders(exchange: Exchange, contentType: string, length: number | undefined): FlatHeaders {
  const headers: FlatHeaders =
    length === undefined ? ['Content-Type', contentType] : ['Content-Type', contentType, 'Content-Length', length];
  headers.push('Audit-Id', exchange.requestId);
  if (exchange.cacheControl !== undefined) headers.push('Cache-Control', exchange.cacheControl);
  const warnings = exchange.warningHeader();
  if (warnings !== undefined) headers.push('Warning', warnings);
  if (exchange.closeConnection && exchange.request.httpVersionMajor === 1) headers.push('Connection', 'close');
  return headers;
}

/**
 * HTTP/2: closes the stream after the response. Otherwise the stream stays open until its request has been read (RFC
 * 9113, 8.1).
 */
function endStreamWith({ stream }: Http2ServerResponse): void {
  stream?.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR));
}

/** Writes the head. Returns false when a response has been started or the client has disconnected. */
export function sendHead(exchange: Exchange, code: number, headers: FlatHeaders): boolean {
  const { response } = exchange;
  if (exchange.answered || response.headersSent || response.destroyed) return false;
  exchange.answered = true;
  if (exchange.closeConnection && exchange.request.httpVersionMajor === 2)
    endStreamWith(response as unknown as Http2ServerResponse);
  response.writeHead(code, headers as Parameters<ServerResponse['writeHead']>[1] & string[]);
  return true;
}

/** Sends a complete response. A response to HEAD has the Content-Length of the body and no body. */
export function sendBytes(
  exchange: Exchange,
  code: number,
  contentType: string,
  body: Buffer,
  extra?: FlatHeaders,
): void {
  const headers = answerHeaders(exchange, contentType, body.length);
  if (extra !== undefined) headers.push(...extra);
  if (!sendHead(exchange, code, headers)) return;
  if (exchange.request.method === 'HEAD') {
    exchange.response.end();
    return;
  }
  exchange.sentBytes += body.length;
  exchange.complete = true;
  const { response } = exchange;
  // A system call between two requests removes the code of the server from the caches of the processor. HTTP/2 itself
  // sends the responses of a connection together.
  if (exchange.request.httpVersionMajor === 1) eventLoopTurns.atEnd(() => response.end(body));
  else response.end(body);
}

/** An abort controller that one request uses at a time. */
export interface BorrowedSignal {
  readonly controller: AbortController;
  /** To be called at the end of the request. The request must not use the signal afterwards. */
  release(): void;
}

/**
 * The abort signal that the requests of one connection use one after the other. Creating a signal for each request
 * would cost more than a GET of one object, and nearly all signals report an event of the connection: the client has
 * disconnected.
 */
class ConnectionSignal implements BorrowedSignal {
  controller = new AbortController();
  #busy = false;

  /** False when another request uses the signal, or the client has disconnected. */
  take(): boolean {
    if (this.#busy || this.controller.signal.aborted) return false;
    this.#busy = true;
    return true;
  }

  release(): void {
    const { signal } = this.controller;
    // An aborted signal, or one that still has listeners, is not used again.
    if (signal.aborted || getEventListeners(signal, 'abort').length > 0) this.controller = new AbortController();
    this.#busy = false;
  }
}

const connections = new WeakMap<Socket, ConnectionSignal>();

function signalOf(socket: Socket): ConnectionSignal {
  let found = connections.get(socket);
  if (found === undefined) {
    const made = new ConnectionSignal();
    connections.set(socket, made);
    socket.once('close', () => made.controller.abort());
    if (socket.destroyed) made.controller.abort();
    found = made;
  }
  return found;
}

/** Controllers that have not aborted and have no listeners, for the next requests. */
const freeControllers: AbortController[] = [];
const mostFreeControllers = 256;

/** The abort signal of one of several concurrent requests of a connection. */
class ResponseSignal implements BorrowedSignal {
  readonly controller = freeControllers.pop() ?? new AbortController();
  #released = false;

  constructor(response: ServerResponse) {
    const onClose = () => {
      if (!this.#released && !response.writableFinished) this.controller.abort();
    };
    response.on('close', onClose);
    if (response.destroyed) onClose();
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    const { signal } = this.controller;
    if (
      freeControllers.length < mostFreeControllers &&
      !signal.aborted &&
      getEventListeners(signal, 'abort').length === 0
    )
      freeControllers.push(this.controller);
  }
}

/**
 * A controller whose signal aborts when the client disconnects. Concurrent requests of one connection (HTTP/2,
 * pipelining) get a controller each.
 */
export function borrowSignal(request: IncomingMessage, response: ServerResponse): BorrowedSignal {
  if (request.httpVersionMajor === 1) {
    const connection = signalOf(request.socket);
    if (connection.take()) return connection;
  }
  return new ResponseSignal(response);
}

const prepared = new WeakSet<Socket>();

const ignore = (): void => {};

/**
 * Delivers the bytes of a connection to Node's parser through the stream of the socket, which buffers while it is
 * paused.
 */
function parseThroughStream(this: Socket): void {
  // Node detaches the parser from the native handle when a `data` listener is added, and never attaches it again.
  this.on('data', ignore);
  this.off('data', ignore);
  // The stream still waits for bytes that its handle gave to the parser. An empty chunk ends this wait; without it
  // `resume` reads nothing.
  this.push('');
}

/**
 * Prevents the loss of a TLS connection whose next request arrives before its last answer is written completely.
 *
 * Node pauses the parser of such a connection. TLS, however, delivers the records that it has decrypted already
 * straight to the paused parser, which fails with "Parse Error: Paused", and Node destroys the connection. This happens
 * with answers of 16 KiB or more followed by requests of two records or more. Every answer that is written outside the
 * poll phase of the event loop (from `setImmediate` or a timer) can be affected, because TLS reports its completion
 * only after the next poll phase.
 */
export function prepareForPause({ httpVersionMajor, socket }: IncomingMessage): void {
  // Streams of HTTP/2 have no parser of their own, and plain sockets deliver nothing while they are paused.
  if (httpVersionMajor !== 1 || (socket as TLSSocket).encrypted !== true || prepared.has(socket)) return;
  prepared.add(socket);
  socket.once('pause', parseThroughStream);
}
