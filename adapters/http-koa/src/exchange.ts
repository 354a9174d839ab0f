import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestAttributes, RequestContext, StatusError, UserInfo } from '@keelson/core';
import type { UpgradeRequest } from './connect/upgrade-requests.ts';
import { borrowSignal, type SignalLoan } from './connection-signal.ts';
import { requireAllowed } from './filters/authorization.ts';
import type { FlightClass } from './filters/in-flight-limits.ts';
import { type Authorize, anonymousUser, mastersOnly } from './options.ts';
import { WarningHeaders } from './warning-headers.ts';

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
