import type { IncomingMessage } from 'node:http';
import { statusErrors, type UserInfo } from '@keelson/core';

const authenticated = 'system:authenticated';
const unauthenticated = 'system:unauthenticated';

/** Adds the group of all authenticated users, except to the anonymous user and to users outside that group. */
export function authenticatedUser(user: UserInfo): UserInfo {
  const { name, groups } = user;
  if (name === 'system:anonymous' || groups.includes(authenticated) || groups.includes(unauthenticated)) return user;
  return { ...user, groups: [...groups, authenticated] };
}

/** Prefix of the WebSocket subprotocol by which browsers send a token: they cannot set the Authorization header. */
const webSocketBearer = 'base64url.bearer.authorization.k8s.io.';

/**
 * The bearer token of a request: from the Authorization header, or from a subprotocol of a WebSocket request. Undefined
 * without one.
 *
 * @throws StatusError 401 for an invalid subprotocol
 */
export function bearerToken({ headers }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) {
    // As in Kubernetes, one space precedes the token; a header without a token there is no credential.
    const [scheme = '', token = ''] = authorization.trim().split(' ', 2);
    if (token !== '' && scheme.toLowerCase() === 'bearer') return token;
  }
  const protocols = headers['sec-websocket-protocol'];
  if (protocols === undefined || !protocols.includes(webSocketBearer) || !isWebSocket(headers)) return undefined;
  return webSocketToken(protocols.split(',').map((protocol) => protocol.trim()));
}

function unauthorized(): never {
  throw statusErrors.unauthorized();
}

/** The key remains when a request is served without its upgrade, for example a watch. */
function isWebSocket(headers: IncomingMessage['headers']): boolean {
  const { upgrade = '', connection = '' } = headers;
  if (headers['sec-websocket-key'] !== undefined) return true;
  return upgrade.toLowerCase() === 'websocket' && /(?:^|,)\s*upgrade\s*(?:,|$)/i.test(connection);
}

/** Besides the token there must be one other subprotocol, because a server must not choose the token. */
function webSocketToken(protocols: readonly string[]): string {
  const tokens = protocols.filter((protocol) => protocol.startsWith(webSocketBearer));
  const [encoded = ''] = tokens.map((protocol) => protocol.slice(webSocketBearer.length));
  if (tokens.length !== 1 || protocols.length < 2 || !/^[\w-]+$/.test(encoded)) return unauthorized();
  const token = Buffer.from(encoded, 'base64url');
  const text = token.toString('utf8');
  // Bytes that are not UTF-8 would be replaced, and the token would be another one.
  if (!Buffer.from(text, 'utf8').equals(token) || !/^[\x21-\x7e]+$/.test(text)) return unauthorized();
  return text;
}

/** Headers by which an authenticating front proxy states the user. */
export interface RequestHeaders {
  /** Names of headers with the user name; the first one present is used. */
  readonly username: readonly string[];
  readonly uid?: readonly string[];
  readonly groups?: readonly string[];
  /** Prefixes of the names of headers with extra fields. The rest of a name is the key of the field. */
  readonly extraPrefixes?: readonly string[];
}

const latin1 = (value: string): string => Buffer.from(value, 'latin1').toString('utf8');

/** All values of the first listed header that has a value. */
function valuesOf(names: readonly string[] | undefined, headers: ReadonlyMap<string, readonly string[]>): string[] {
  for (const name of names ?? []) {
    const values = (headers.get(name.toLowerCase()) ?? []).filter((value) => value !== '');
    if (values.length > 0) return values;
  }
  return [];
}

function decodedKey(key: string): string {
  try {
    return decodeURIComponent(key).toLowerCase();
  } catch {
    return key;
  }
}

/** The user stated by a front proxy; undefined without a user name. The caller has verified the proxy. */
export function requestHeaderUser({ rawHeaders }: IncomingMessage, names: RequestHeaders): UserInfo | undefined {
  const headers = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    const values = headers.get(name);
    // Node decodes header bytes as Latin-1; proxies send names in UTF-8.
    const value = latin1(rawHeaders[at + 1] ?? '');
    if (values === undefined) headers.set(name, [value]);
    else values.push(value);
  }
  const [name] = valuesOf(names.username, headers);
  if (name === undefined) return undefined;
  const [uid] = valuesOf(names.uid, headers);
  const extra = new Map<string, readonly string[]>();
  for (const prefix of names.extraPrefixes ?? []) {
    for (const [header, values] of headers) {
      if (header.length > prefix.length && header.startsWith(prefix.toLowerCase())) {
        const key = decodedKey(header.slice(prefix.length));
        extra.set(key, [...(extra.get(key) ?? []), ...values]);
      }
    }
  }
  // Unlike the name, groups are collected from every listed header.
  const groups = (names.groups ?? []).flatMap((header) => valuesOf([header], headers));
  return authenticatedUser({
    name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra.size > 0 ? { extra: Object.fromEntries(extra) } : {}),
  });
}
