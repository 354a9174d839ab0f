// One file: the filters of a request, in the order in which they run.
import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ConnectSubresource, isStatusError, StatusError, statusErrors, type UserInfo } from '@keelson/core';
import {
  type Auditor,
  type Brand,
  defaultBrand,
  parseRequestAttributes,
  type RequestAttributes,
  type RequestAudit,
  WebPageGuard,
} from '@keelson/core/internal';
import { type Clock, eventLoopTurns, type Logger } from '@keelson/core/runtime';
import type { AggregatedApis } from './aggregated-apis.ts';
import { type Authentication, Exchange, prepareForPause } from './exchange.ts';
import { impersonatedUser, isMaster, isUrgent, RunningRequests, requireAllowed, requireValid } from './filters.ts';
import { FlowControl } from './flow-control.ts';
import { defaultFlowControl } from './flow-options.ts';
import { withAllMembers } from './http2-messages.ts';
import type { HttpLevels, HttpMetrics } from './metrics.ts';
import { type Authorize, anonymousUser, type HttpApiOptions, type HttpLimits, mastersOnly } from './options.ts';
import { timeoutParameter } from './query-parameters.ts';
import { ClientGone } from './request-body.ts';
import { sendStatus, sendTooMany } from './send.ts';

/** Responds to an admitted request. */
export type Handler = (exchange: Exchange) => Promise<void> | void;

const auditIdPattern = /^[\x21-\x7e]{1,64}$/;

/**
 * The filters that every request passes before its handler: see docs/reference/api-rules.md#order-of-request-filters.
 * The Koa application and the direct path of resource requests both use it.
 */
export class Pipeline {
  /** The beginning of a random UUID. Its end is the number of the request, which costs less than more random bits. */
  readonly #idPrefix = randomUUID().slice(0, -12);
  #requests = 0;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #limits: HttpLimits;
  readonly #brand: Brand;
  readonly #metrics: HttpMetrics;
  readonly #authenticate: HttpApiOptions['authenticate'];
  readonly #authorize: Authorize;
  readonly #auditor: Auditor | undefined;
  readonly #fallbackUser: UserInfo;
  /** Set when requests without credentials have the rights of a user. */
  readonly #webPages: WebPageGuard | undefined;
  readonly #connectOf: (attributes: RequestAttributes) => ConnectSubresource | undefined;
  readonly #aggregated: AggregatedApis | undefined;
  readonly #flows: FlowControl;
  readonly #running: RunningRequests;
  readonly #keepAsyncContext: boolean;
  #draining = false;

  /** @param connectOf the connect subresource that a request names */
  constructor(
    options: HttpApiOptions,
    limits: HttpLimits,
    metrics: HttpMetrics,
    connectOf: (attributes: RequestAttributes) => ConnectSubresource | undefined,
  ) {
    this.#clock = options.clock;
    this.#logger = options.logger.child({ component: 'http' });
    this.#limits = limits;
    this.#brand = options.brand ?? defaultBrand;
    this.#metrics = metrics;
    this.#authenticate = options.authenticate;
    this.#authorize = options.authorize ?? mastersOnly;
    this.#auditor = options.auditor;
    this.#fallbackUser = options.insecureUser ?? anonymousUser;
    const remedy = 'the option allowedHosts allows more than loopback addresses';
    this.#webPages = options.insecureUser && new WebPageGuard({ names: options.allowedHosts ?? [], remedy });
    this.#connectOf = connectOf;
    this.#aggregated = options.aggregated;
    this.#flows = new FlowControl(limits, { ...defaultFlowControl, ...options.flowControl }, options.clock, metrics);
    this.#keepAsyncContext = options.keepAsyncContext === true;
    this.#running = new RunningRequests(options.clock, (exchange) => this.#expired(exchange));
  }

  get levels(): HttpLevels {
    return this.#flows.levels;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /**
   * Creates a listener for an HTTP server. Resource requests wait for their turn of the event loop. They are then
   * passed to `through`, which must call {@link run}; without `through` they pass the filters and then
   * `handleResource`. All other requests are passed to `handleOther`.
   */
  listener(
    handleResource: Handler,
    handleOther: (request: IncomingMessage, response: ServerResponse) => void,
    through: ((exchange: Exchange) => void) | undefined,
  ): (request: IncomingMessage, response: ServerResponse) => void {
    return (request, response) => {
      const attributes = attributesOf(request);
      if (!attributes.isResourceRequest) {
        const whole = withAllMembers(request, response);
        return handleOther(whole.request, whole.response);
      }
      const exchange =
        through !== undefined || this.#isForwarded(attributes)
          ? this.#openWhole(request, response, attributes)
          : this.open(request, response, attributes);
      const work = () => (through === undefined ? void this.run(exchange, handleResource) : through(exchange));
      const piece = this.#keepAsyncContext ? AsyncResource.bind(work) : work;
      if (isUrgent(exchange.attributes)) return eventLoopTurns.add(piece, { urgent: true });
      exchange.authentication = this.#authenticated(request);
      const caller = this.#callerOf(exchange);
      if (this.#rejectedByOverload(exchange, eventLoopTurns.delayMs(caller))) return;
      eventLoopTurns.add(piece, { caller });
    };
  }

  /** True for requests that an agent, a pod or an aggregated server answers. */
  #isForwarded(attributes: RequestAttributes): boolean {
    if (this.#isConnect(attributes)) return true;
    const aggregated = this.#aggregated;
    return aggregated?.active === true && aggregated.find(attributes.apiGroup, attributes.apiVersion) !== undefined;
  }

  /** Creates the record of a new request. */
  open(request: IncomingMessage, response: ServerResponse, attributes = attributesOf(request)): Exchange {
    prepareForPause(request);
    const now = this.#clock.monotonic();
    return new Exchange(
      request,
      response,
      attributes,
      this.#requestIdOf(request),
      now,
      now + this.#limits.requestTimeoutMs,
    );
  }

  /**
   * Creates the record of a request that is forwarded or passed to middleware, which need all members of Node's request
   * and response classes.
   */
  #openWhole(request: IncomingMessage, response: ServerResponse, attributes: RequestAttributes): Exchange {
    const whole = withAllMembers(request, response);
    return this.open(whole.request, whole.response, attributes);
  }

  #isConnect(attributes: RequestAttributes): boolean {
    return attributes.subresource !== '' && this.#connectOf(attributes) !== undefined;
  }

  #requestIdOf(request: IncomingMessage): string {
    const sent = request.headers['audit-id'];
    if (typeof sent === 'string' && auditIdPattern.test(sent)) return sent;
    this.#requests += 1;
    return this.#idPrefix + this.#requests.toString(16).padStart(12, '0');
  }

  /**
   * Handles a request: filters, then `handle`. Never rejects; every failure becomes a response. The resources of the
   * request are released at its end, and at the latest at its deadline, even if an authenticator, an authorizer or the
   * handler never settles.
   */
  async run(exchange: Exchange, handle: Handler): Promise<void> {
    this.#running.add(exchange);
    let cancelTimeout: (() => void) | undefined;
    let authenticated = false;
    try {
      if (this.#draining) {
        exchange.closeConnection = true;
        throw statusErrors.serviceUnavailable('the server is shutting down');
      }
      requireValid(exchange);
      const { attributes } = exchange;
      const connect = this.#isConnect(attributes);
      // The query of a connect request is meant for the upstream.
      if (!connect) cancelTimeout = this.#startTimeout(exchange);

      const authentication = exchange.authentication ?? this.#authenticated(exchange.request);
      if ('error' in authentication) throw authentication.error;
      const found = authentication.user;
      exchange.user = (found instanceof Promise ? await found : found) ?? this.#withoutCredentials(exchange.request);
      authenticated = true;
      if (this.#auditor !== undefined) beginAudit(this.#auditor, exchange, exchange.user);
      const other = impersonatedUser(exchange.request, attributes, exchange.user, this.#authorize);
      if (other !== undefined) {
        exchange.user = await other;
        exchange.audit?.impersonated(exchange.user);
      }
      if (exchange.abortedWith !== undefined) return;

      const entered = this.#flows.enter(attributes, exchange.user, connect);
      const seat = entered instanceof Promise ? await this.#queued(exchange, entered) : entered;
      if (seat === undefined) {
        this.#metrics.rejected(connect ? 'connect' : attributes.verb === 'watch' ? 'watch' : 'queue');
        if (exchange.abortedWith === undefined) sendTooMany(exchange);
        return;
      }
      // The request may have ended while it waited; then nothing else returns its seat.
      if (exchange.place === -1) return this.#flows.leave(seat);
      exchange.seat = seat;

      const answer = this.#authorize(attributes, exchange.user);
      const decision = answer instanceof Promise ? await answer : answer;
      exchange.audit?.decided(typeof decision === 'boolean' ? { allowed: decision } : decision);
      if (exchange.abortedWith !== undefined) return;
      requireAllowed(decision, attributes, exchange.user);
      exchange.authorizer = this.#authorize;

      if (connect) exchange.longRunning = true;
      const handlerEnd = this.#clock.monotonic() + this.#limits.handlerTimeoutMs;
      if (handlerEnd < exchange.deadlineAt) exchange.deadlineAt = handlerEnd;
      const handled = handle(exchange);
      if (handled !== undefined) await handled;
    } catch (error) {
      if (!authenticated && this.#auditor !== undefined) this.#auditRejected(this.#auditor, exchange);
      this.#answerError(exchange, error);
    } finally {
      cancelTimeout?.();
      this.#finish(exchange);
    }
  }

  async #queued<T>(exchange: Exchange, entered: Promise<T>): Promise<T> {
    const since = this.#clock.monotonic();
    try {
      return await entered;
    } finally {
      exchange.waited(this.#clock.monotonic() - since);
    }
  }

  /**
   * Responds with 429 and returns true when the requests of a caller wait for the event loop for `delayMs` and the
   * limit of the user is lower. The request has passed no filter yet. A user that can only be authenticated
   * asynchronously has the limit of ordinary users.
   */
  #rejectedByOverload(exchange: Exchange, delayMs: number): boolean {
    const { overloadDelayMs, overloadDelayMastersMs } = this.#limits;
    if (delayMs <= overloadDelayMs) return false;
    if (delayMs <= overloadDelayMastersMs && this.#isOfMaster(exchange)) return false;
    this.#metrics.rejected('overload');
    sendTooMany(exchange);
    this.#metrics.finished(exchange, this.#clock.monotonic());
    return true;
  }

  /** Authenticates before the request waits for its turn, because users take turns. Never throws. */
  #authenticated(request: IncomingMessage): Authentication {
    try {
      const user = this.#authenticate?.(request);
      // The error is reported when the request has its turn.
      if (user instanceof Promise) user.catch(() => {});
      return { user };
    } catch (error) {
      return { error };
    }
  }

  /**
   * The user of a request; undefined when the credentials are invalid, or when they can only be verified
   * asynchronously.
   */
  #userOf({ authentication }: Exchange): UserInfo | undefined {
    if (authentication === undefined || 'error' in authentication) return undefined;
    const { user } = authentication;
    return user instanceof Promise ? undefined : (user ?? this.#fallbackUser);
  }

  /**
   * The caller in whose queue a request waits for its turn. Credentials that are not verified yet share one queue:
   * otherwise a client with many invented tokens would have as many turns.
   */
  #callerOf(exchange: Exchange): string {
    const user = this.#userOf(exchange);
    return user === undefined ? '' : `user ${user.name}`;
  }

  #isOfMaster(exchange: Exchange): boolean {
    const user = this.#userOf(exchange);
    return user !== undefined && isMaster(user);
  }

  /** Releases the resources of a request, once. */
  #finish(exchange: Exchange): void {
    if (!this.#running.remove(exchange)) return;
    if (exchange.seat !== undefined) this.#flows.leave(exchange.seat);
    exchange.release();
    const now = this.#clock.monotonic();
    if (exchange.audit !== undefined) endAudit(exchange.audit, exchange, now);
    this.#metrics.finished(exchange, now);
  }

  /** The rejection of a request without a valid user is sent even when it cannot be recorded. */
  #auditRejected(auditor: Auditor, exchange: Exchange): void {
    try {
      beginAudit(auditor, exchange, undefined);
    } catch (err) {
      this.#logger.debug('a rejected request was not recorded', { requestId: exchange.requestId, err });
    }
  }

  #expired(exchange: Exchange): void {
    // The rest of the request may never arrive, and until then the connection cannot be used for another request.
    if (!exchange.request.complete) exchange.closeConnection = true;
    this.#answerError(exchange, exchange.abortedWith);
    this.#finish(exchange);
  }

  /** Rejects new requests with 503. Resolves when the running ones are answered. */
  drain(): Promise<void> {
    this.#draining = true;
    return this.#running.idle();
  }

  /** @throws StatusError 403 when a web page may have sent the request */
  #withoutCredentials({ headers }: IncomingMessage): UserInfo {
    const problem = this.#webPages?.problem(headers);
    if (problem !== undefined) throw statusErrors.relayed(403, problem);
    return this.#fallbackUser;
  }

  /** Enforces the client's `timeout` more precisely than the sweep does; watches have `timeoutSeconds` instead. */
  #startTimeout(exchange: Exchange): (() => void) | undefined {
    const { attributes } = exchange;
    if (attributes.query.text === '' || attributes.verb === 'watch') return undefined;
    const timeoutMs = timeoutParameter(attributes.query);
    if (timeoutMs === undefined || timeoutMs >= this.#limits.requestTimeoutMs) return undefined;
    return this.#clock.after(timeoutMs, () => this.#running.expire(exchange));
  }

  #answerError(exchange: Exchange, error: unknown): void {
    if (error instanceof ClientGone) {
      exchange.response.destroy();
      return;
    }
    // An aborted operation may fail with any error; the reason for the abort is reported to the client.
    const shown = exchange.abortedWith ?? this.#statusErrorOf(exchange, error);
    if (exchange.answered || exchange.response.headersSent) {
      // A response that has been started cannot become an error; closing the connection is the only remaining signal.
      if (!exchange.complete && !exchange.response.writableEnded) exchange.response.destroy();
      return;
    }
    exchange.audit?.failed(shown.status);
    try {
      sendStatus(exchange, shown, this.#brand);
    } catch (err) {
      this.#logger.error('response could not be written', { requestId: exchange.requestId, err });
      exchange.response.destroy();
    }
  }

  #statusErrorOf(exchange: Exchange, error: unknown): StatusError {
    if (isStatusError(error)) return error;
    exchange.audit?.panicked();
    this.#logger.error('request failed unexpectedly', {
      requestId: exchange.requestId,
      verb: exchange.attributes.verb,
      resource: exchange.metricsResource?.labels.resource,
      err: error,
    });
    return new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `Internal error occurred: ${error instanceof Error ? error.name : 'unknown'}`,
      reason: 'InternalError',
      details: { causes: [{ message: 'the server log has more under this Audit-Id' }] },
      code: 500,
    });
  }
}

function attributesOf({ method = 'GET', url = '/' }: IncomingMessage): RequestAttributes {
  return parseRequestAttributes(method, url);
}

/** @throws StatusError 500 when the request must not continue without a record */
function beginAudit(auditor: Auditor, exchange: Exchange, user: UserInfo | undefined): void {
  const { request, requestId, attributes, startedAt } = exchange;
  exchange.audit = auditor.begin({
    id: requestId,
    uri: request.url ?? '/',
    headers: request.headers,
    remoteAddress: request.socket.remoteAddress,
    attributes,
    user,
    startedAt,
  });
}

function endAudit(audit: RequestAudit, { answered, response }: Exchange, now: number): void {
  // The code is 0 without a response. A response of Koa is sent after the end of the exchange.
  audit.ended(answered || !response.destroyed ? response.statusCode : 0, now);
}
