import { getEventListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RequestAttributes, RequestContext, StatusError, UserInfo } from '@keelson/core';
import { type FlightClass, requireAllowed } from './filters.ts';
import { type Authorize, anonymousUser, mastersOnly } from './options.ts';

/** A connection whose client wants to leave HTTP. */
export interface UpgradeRequest {
  readonly socket: Socket;
  /** Bytes that came behind the head of the request. */
  readonly head: Buffer;
}

const truthy: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const falsy: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/**
 * One request and its answer: what every filter and handler passes on. It is also the {@link RequestContext} of the
 * operations that the request causes. Parts that most requests never need are made on first use.
 */
export class Exchange implements RequestContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly attributes: RequestAttributes;
  readonly requestId: string;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
  /** Monotonic milliseconds after which the request has run too long; moved on while a long answer makes progress. */
  deadlineAt: number;
  user: UserInfo = anonymousUser;
  /** Decides about every verb that the request needs; set once the request itself is allowed. */
  authorizer: Authorize = mastersOnly;
  /** Name of the resource in metrics: a registered plural, or `other`. */
  metricsResource = 'other';
  /** A watch, or a call that is passed on: exempt from deadlines and limits. */
  longRunning = false;
  /** Set when the client wants to leave HTTP, and may. */
  upgrade: UpgradeRequest | undefined;
  /** Place among the running requests, -1 when it is not one of them; kept by them. */
  place = -1;
  /** The limit that this request counts against; undefined before it is admitted. Kept by the pipeline. */
  flight: FlightClass | undefined;
  /** Bytes of body sent, for metrics. */
  sentBytes = 0;
  /** Set when the rest of the request cannot be read: the connection ends with the answer. */
  closeConnection = false;
  /** Value of the `Cache-Control` header; undefined when the answer brings its own. */
  cacheControl: string | undefined = 'no-cache, private';
  /** Value of the `Allow` header of a 405. */
  allow: string | undefined = undefined;
  /** True once somebody has taken on the answer; whoever comes later has nothing to say. */
  answered = false;
  #loan: SignalLoan | undefined;
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
   * Whether the client prefers indented JSON: see docs/reference/api-rules.md#query-parameters. A value of `pretty` that
   * is not a boolean is ignored.
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

  /** Aborted when the client is gone or the deadline has passed. Not to be used when the request is over. */
  get signal(): AbortSignal {
    if (this.#loan === undefined) {
      this.#loan = borrowSignal(this.request, this.response);
      if (this.#abortedWith !== undefined) this.#loan.controller.abort(this.#abortedWith);
    }
    return this.#loan.controller.signal;
  }

  /** Bound, because contexts are taken apart. */
  get authorize(): (verb: string) => Promise<void> {
    return async (verb) => {
      const attributes = { ...this.attributes, verb };
      requireAllowed(await this.authorizer(attributes, this.user), attributes, this.user);
    };
  }

  /** Remembers a remark for the `Warning` header. Bound, because contexts are taken apart. */
  get warn(): (text: string) => void {
    this.#warn ??= (text) => {
      this.#warnings ??= new WarningHeaders();
      this.#warnings.add(text);
    };
    return this.#warn;
  }

  /** Values of the `Warning` header, undefined when there is nothing to say. */
  warningHeader(): string[] | undefined {
    return this.#warnings?.values();
  }

  /** Stops the operation: whoever looks at the signal sees `reason`. */
  abort(reason?: StatusError): void {
    this.#abortedWith = reason;
    this.#loan?.controller.abort(reason);
  }

  /** The request is over: gives back what it borrowed. */
  release(): void {
    this.#loan?.release();
  }

  /** Why the request was stopped, when it was stopped by the server. */
  get abortedWith(): StatusError | undefined {
    return this.#abortedWith;
  }
}

/** A controller on loan to one request. */
export interface SignalLoan {
  readonly controller: AbortController;
  /** To be called when the request is over; nothing of it may use the signal afterwards. */
  release(): void;
}

/**
 * The abort signal that the requests of one connection use one after the other. Making a signal for each request would
 * cost more than finding the object it asks for; and what most signals tell, that the client is gone, is a fact about
 * the connection.
 */
class ConnectionSignal implements SignalLoan {
  controller = new AbortController();
  #busy = false;

  /** False when another request has it, or the client is gone. */
  take(): boolean {
    if (this.#busy || this.controller.signal.aborted) return false;
    this.#busy = true;
    return true;
  }

  release(): void {
    const { signal } = this.controller;
    // Used up, or something still listens: the next request gets another one.
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

/**
 * A controller whose signal aborts when the client goes away. Requests that share their connection at the same time
 * (HTTP/2, pipelining) get one each.
 */
export function borrowSignal(request: IncomingMessage, response: ServerResponse): SignalLoan {
  const { socket } = request;
  if (request.httpVersionMajor === 1) {
    const connection = signalOf(socket);
    if (connection.take()) return connection;
  }
  const controller = new AbortController();
  const onClose = () => {
    if (!response.writableFinished) controller.abort();
  };
  response.once('close', onClose);
  if (response.destroyed) onClose();
  return { controller, release: () => response.off('close', onClose) };
}

const prepared = new WeakSet<Socket>();

const ignore = (): void => {};

/**
 * From here on the bytes of a connection reach Node's parser through the stream of the socket, which keeps them while
 * it is paused.
 */
function parseThroughStream(this: Socket): void {
  // Node disconnects the parser from the native handle when a listener for data is added, and never connects it again.
  this.on('data', ignore);
  this.off('data', ignore);
  // The stream has waited for bytes that its handle gave to the parser. An empty chunk ends this wait; without it
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

/** Greatest length of all header values together; kube-apiserver permits as much text. */
const maxTotal = 4096;
/** Length to which each text is cut once the texts exceed the total. */
const maxCutText = 256;
/** Greatest number of headers: Python's HTTP client refuses answers with more than a hundred headers of all names. */
const maxHeaders = 50;

const omitted = '299 - "further warnings were omitted"';

/**
 * The `Warning` headers of one answer, each text once. Their number and total length are limited, because clients and
 * proxies refuse answers with large heads, and an answer that is refused may belong to a write that has happened.
 */
export class WarningHeaders {
  readonly #texts = new Set<string>();
  #full = false;

  add(text: string): void {
    if (text === '' || this.#full) return;
    this.#texts.add(text);
    // Cut texts of this number exceed the limits whatever follows.
    this.#full = this.#texts.size > maxHeaders;
  }

  /**
   * Values of the headers. Texts are cut only where the limits require it; what still does not fit is omitted, which
   * the last value states.
   */
  values(): string[] {
    const whole = [...this.#texts].map(headerValue);
    if (lengthOf(whole) <= maxTotal && whole.length <= maxHeaders) return whole;
    const values: string[] = [];
    let room = maxTotal - omitted.length;
    for (const text of this.#texts) {
      const value = headerValue(text.slice(0, maxCutText));
      room -= value.length;
      if (room < 0 || values.length === maxHeaders - 1) return [...values, omitted];
      values.push(value);
    }
    return values;
  }
}

function lengthOf(values: readonly string[]): number {
  return values.reduce((sum, value) => sum + value.length, 0);
}

/** Code 299 and a quoted-string of RFC 7230; characters that a header cannot carry become `?`. */
function headerValue(text: string): string {
  return `299 - "${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}
