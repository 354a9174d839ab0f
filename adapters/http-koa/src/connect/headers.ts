import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';

/** Headers that mean one connection and not the whole way; RFC 9110, 7.6.1. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Request headers that concern this server only: the upstream must not be able to act as the client. */
const forThisServer: ReadonlySet<string> = new Set([
  'host',
  'authorization',
  'cookie',
  'expect',
  'audit-id',
  'forwarded',
  'x-real-ip',
]);

/**
 * Prefixes of headers by which front proxies assert an identity or an origin; an upstream that trusts this server would
 * believe them.
 */
const assertedByProxies = ['impersonate-', 'x-remote-', 'x-forwarded-'];

/**
 * Headers of a conditional request. Answers of agents carry no validators, so that a 304 would mean nothing to the
 * client.
 */
const conditional: ReadonlySet<string> = new Set([
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
]);

type Values = Map<string, string | string[]>;

/** Headers by lower-case name; repeated ones stay apart. Those that `Connection` names belong to the connection. */
export function passedHeaders({ rawHeaders, headers }: IncomingMessage): Values {
  const named = new Set((headers.connection ?? '').split(',').map((word) => word.trim().toLowerCase()));
  const values: Values = new Map();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (hopByHop.has(name) || named.has(name) || name.startsWith(':')) continue;
    const value = rawHeaders[i + 1] ?? '';
    const before = values.get(name);
    values.set(name, before === undefined ? value : [...(typeof before === 'string' ? [before] : before), value]);
  }
  return values;
}

/** True when the request has a body, or may have one. */
export function mayHaveBody(request: IncomingMessage): boolean {
  const { headers, httpVersionMajor } = request;
  if (headers['transfer-encoding'] !== undefined) return true;
  if (headers['content-length'] !== undefined) return headers['content-length'] !== '0';
  return httpVersionMajor > 1 && !(request as unknown as Http2ServerRequest).stream.endAfterHeaders;
}

export interface RequestHeaderOptions {
  /** The request keeps its wish to leave HTTP. */
  readonly upgrade: boolean;
  /** The upstream is the agent of a node. */
  readonly agent: boolean;
}

/** The headers with which a request is passed on. */
export function requestHeaders(
  request: IncomingMessage,
  { upgrade, agent }: RequestHeaderOptions,
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of passedHeaders(request)) {
    if (forThisServer.has(name) || assertedByProxies.some((prefix) => name.startsWith(prefix))) continue;
    if (agent && conditional.has(name)) continue;
    headers[name] = value;
  }
  if (upgrade) {
    headers['connection'] = 'Upgrade';
    headers['upgrade'] = request.headers.upgrade;
  }
  // Said anew, whatever the client calls a header of the connection: a body without a length would be read as further
  // requests.
  const length = request.headers['content-length'];
  delete headers['content-length'];
  if (mayHaveBody(request)) {
    if (length === undefined || request.headers['transfer-encoding'] !== undefined)
      headers['transfer-encoding'] = 'chunked';
    else headers['content-length'] = length;
  }
  return headers;
}
