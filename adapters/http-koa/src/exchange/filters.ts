import { IncomingMessage } from 'node:http';
import { type AccessAttributes, StatusError, StatusReason, statusErrors, type UserInfo } from '@keelson/core';
import type { RequestAttributes } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Exchange } from './exchange.ts';
import type { Authorization, Authorize } from './options.ts';

/** The 403 for a request that its user is not authorized to make: see docs/reference/api-rules.md#failures. */
function forbidden(attributes: AccessAttributes, user: UserInfo, reason: string | undefined): StatusError {
  const who = `User ${JSON.stringify(user.name)}`;
  const why = reason ? `: ${reason}` : '';
  if (!attributes.isResourceRequest) {
    return new StatusError({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `forbidden: ${who} cannot ${attributes.verb} path ${JSON.stringify(attributes.path)}${why}`,
      reason: StatusReason.Forbidden,
      details: {},
      code: 403,
    });
  }
  const { verb, resource, subresource, apiGroup, namespace, name } = attributes;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const place = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return statusErrors.forbidden(
    { group: apiGroup, resource },
    name,
    `${who} cannot ${verb} resource ${JSON.stringify(full)} in API group ${JSON.stringify(apiGroup)} ${place}${why}`,
  );
}

/**
 * Returns when protocol version, path and query are valid. Node's parser of HTTP/1 also accepts the versions 0.9 and
 * 2.0, which are rejected as Go's server does.
 *
 * @throws StatusError 400, or 505 for the version
 */
export function requireValid({ request, response, attributes }: Exchange): void {
  if (request.httpVersionMajor !== 1 && request instanceof IncomingMessage) {
    response.shouldKeepAlive = false;
    throw statusErrors.relayed(505, `unsupported protocol version HTTP/${request.httpVersion}`);
  }
  if (attributes.problem !== undefined) throw statusErrors.badRequest(attributes.problem);
}

/** Returns when the decision allows the request. @throws StatusError 403 */
export function requireAllowed(decision: Authorization, attributes: AccessAttributes, user: UserInfo): void {
  if (decision === true) return;
  if (decision === false) throw forbidden(attributes, user, undefined);
  if (!decision.allowed) throw forbidden(attributes, user, decision.reason);
}

/** The user that a request asks to impersonate. */
interface ImpersonationHeaders {
  name: string | undefined;
  uid: string | undefined;
  readonly groups: string[];
  readonly extra: Map<string, string[]>;
}

const prefix = 'impersonate-';
const extraPrefix = 'impersonate-extra-';
const serviceAccountName = /^system:serviceaccount:([^:]+):([^:]+)$/;
const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';

function decodedKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** The value of a header that must occur once; undefined when it is empty, as in Kubernetes. @throws StatusError 400 */
function single(header: string, before: string | undefined, value: string): string | undefined {
  if (before !== undefined)
    throw statusErrors.badRequest(`the header ${JSON.stringify(header)} was sent more than once`);
  return value === '' ? undefined : value;
}

/** Reads the impersonation headers; undefined for nearly every request. Raw headers keep repeated headers separate. */
function impersonationHeaders(request: IncomingMessage): ImpersonationHeaders | undefined {
  const { rawHeaders } = request;
  let wanted: ImpersonationHeaders | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? '';
    if (raw.length <= prefix.length || (raw.charCodeAt(0) | 0x20) !== 0x69) continue;
    const name = raw.toLowerCase();
    if (!name.startsWith(prefix)) continue;
    // Node decodes header bytes as Latin-1; clients send names in UTF-8.
    const value = Buffer.from(rawHeaders[i + 1] ?? '', 'latin1').toString();
    wanted ??= { name: undefined, uid: undefined, groups: [], extra: new Map() };
    if (name === 'impersonate-user') wanted.name = single(raw, wanted.name, value);
    else if (name === 'impersonate-uid') wanted.uid = single(raw, wanted.uid, value);
    else if (name === 'impersonate-group') wanted.groups.push(value);
    else if (name.startsWith(extraPrefix)) {
      const key = decodedKey(name.slice(extraPrefix.length));
      wanted.extra.set(key, [...(wanted.extra.get(key) ?? []), value]);
    } else {
      // Ignoring the header would serve the request with rights that the client intended to give up.
      throw statusErrors.badRequest(`the header ${JSON.stringify(raw)} is not supported`);
    }
  }
  return wanted;
}

/** Whether all headers are empty, as clients that do not impersonate may send them. */
function isEmpty({ name, uid, groups, extra }: ImpersonationHeaders): boolean {
  return name === undefined && uid === undefined && groups.length === 0 && extra.size === 0;
}

type Question = Pick<RequestAttributes, 'apiGroup' | 'resource' | 'subresource' | 'namespace' | 'name'>;

/** The authorizations that impersonating this user requires: see docs/reference/api-rules.md#impersonation. */
function questionsFor(name: string, { uid, groups, extra }: ImpersonationHeaders): Question[] {
  const account = serviceAccountName.exec(name);
  const plain = { apiGroup: '', subresource: '', namespace: '' };
  const questions: Question[] = [
    account
      ? { ...plain, resource: 'serviceaccounts', namespace: account[1] ?? '', name: account[2] ?? '' }
      : { ...plain, resource: 'users', name },
    ...groups.map((group) => ({ ...plain, resource: 'groups', name: group })),
  ];
  const identity = { ...plain, apiGroup: 'authentication.k8s.io' };
  if (uid) questions.push({ ...identity, resource: 'uids', name: uid });
  for (const [key, values] of extra) {
    for (const value of values) questions.push({ ...identity, resource: 'userextras', subresource: key, name: value });
  }
  return questions;
}

function groupsOf(name: string, asked: readonly string[]): readonly string[] {
  const account = serviceAccountName.exec(name);
  const groups =
    asked.length === 0 && account ? ['system:serviceaccounts', `system:serviceaccounts:${account[1]}`] : asked;
  if (name === 'system:anonymous') return groups.includes(unauthenticated) ? groups : [...groups, unauthenticated];
  return groups.includes(authenticated) || groups.includes(unauthenticated) ? groups : [...groups, authenticated];
}

async function become(
  wanted: ImpersonationHeaders,
  attributes: RequestAttributes,
  user: UserInfo,
  authorize: Authorize,
): Promise<UserInfo> {
  const { name, uid, groups, extra } = wanted;
  if (name === undefined) {
    throw statusErrors.badRequest('a group, uid or extra field was requested without impersonating a user');
  }
  for (const question of questionsFor(name, wanted)) {
    const asked: RequestAttributes = {
      ...attributes,
      ...question,
      verb: 'impersonate',
      isResourceRequest: true,
      named: true,
    };
    requireAllowed(await authorize(asked, user), asked, user);
  }
  return {
    name,
    groups: groupsOf(name, groups),
    ...(uid ? { uid } : {}),
    ...(extra.size > 0 ? { extra: Object.fromEntries(extra) } : {}),
  };
}

/**
 * The user that a request is made as: undefined without impersonation headers. The rest of the request uses only this
 * user.
 *
 * @throws StatusError 403 when the impersonation is not authorized, 400 for headers without a user and for unsupported
 *   headers
 */
export function impersonatedUser(
  request: IncomingMessage,
  attributes: RequestAttributes,
  user: UserInfo,
  authorize: Authorize,
): Promise<UserInfo> | undefined {
  const wanted = impersonationHeaders(request);
  if (wanted === undefined || isEmpty(wanted)) return undefined;
  return become(wanted, attributes, user, authorize);
}

/**
 * Requests with priority, which are not rejected for overload: a leader whose lease is not renewed in time is replaced,
 * which causes more work. Health checks are answered immediately, without waiting for a turn.
 */
export function isUrgent({ apiGroup, resource, subresource, name, verb }: RequestAttributes): boolean {
  return (
    apiGroup === 'coordination.k8s.io' &&
    resource === 'leases' &&
    subresource === '' &&
    (name !== '' || verb === 'create')
  );
}

export const isMaster = (user: UserInfo): boolean => user.groups.includes('system:masters');

/** Interval at which the deadlines of running requests are checked, in milliseconds. */
const sweepMs = 1000;

/**
 * All running requests and their deadlines. One timer serves all of them and runs only while there are any: a timer for
 * each request would be a noticeable cost of a cheap request.
 */
export class RunningRequests {
  readonly #clock: Clock;
  readonly #onExpired: (exchange: Exchange) => void;
  /** Unordered; each exchange stores its index, so that removal takes constant time. */
  readonly #running: Exchange[] = [];
  #sweeping = false;
  #whenIdle: (() => void)[] = [];

  /**
   * @param onExpired called when a request has exceeded its deadline, to answer and remove it; its signal is already
   *   aborted
   */
  constructor(clock: Clock, onExpired: (exchange: Exchange) => void) {
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  get size(): number {
    return this.#running.length;
  }

  add(exchange: Exchange): void {
    exchange.place = this.#running.length;
    this.#running.push(exchange);
    if (!this.#sweeping) this.#schedule();
  }

  /** False when the request was removed before. */
  remove(exchange: Exchange): boolean {
    if (exchange.place === -1) return false;
    const last = this.#running.pop();
    if (last !== undefined && last !== exchange) {
      this.#running[exchange.place] = last;
      last.place = exchange.place;
    }
    exchange.place = -1;
    if (this.#running.length === 0 && this.#whenIdle.length > 0) {
      for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
    return true;
  }

  /** Resolves when no request is running. */
  idle(): Promise<void> {
    if (this.#running.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Aborts a request that has exceeded its deadline. */
  expire(exchange: Exchange): void {
    exchange.abort(statusErrors.timeout('request did not complete within the allotted timeout'));
    this.#onExpired(exchange);
  }

  #schedule(): void {
    this.#sweeping = true;
    this.#clock.after(sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#sweeping = false;
    const now = this.#clock.monotonic();
    // A copy, because expiring one request may remove others.
    for (const exchange of [...this.#running]) {
      if (exchange.place !== -1 && !exchange.longRunning && exchange.deadlineAt <= now) this.expire(exchange);
    }
    if (this.#running.length > 0) this.#schedule();
  }
}
