import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { mayHaveBody } from '../exchange/request-body.ts';
import type { FlatHeaders } from '../exchange/send.ts';

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

/**
 * Content types that no browser executes. An answer of an agent has the origin of the API, where a page would have the
 * permissions of the administrator whose browser shows it.
 */
const inertTypes = new RegExp(
  '^(?:text/(?:plain|csv)|application/(?:json|yaml|octet-stream|openmetrics-text|gzip|x-gzip|x-tar|zip|' +
    'vnd\\.google\\.protobuf|vnd\\.kubernetes\\.protobuf))(?:;[\\w .;,="/+-]*)?$',
);

/**
 * Headers of an agent's answer that reach the client; everything else, such as cookies and CORS headers, would speak
 * for this server.
 */
const ofAgents: ReadonlySet<string> = new Set([
  'accept-ranges',
  'allow',
  'content-disposition',
  'content-encoding',
  'content-length',
  'content-range',
  'retry-after',
  'vary',
]);

/**
 * Headers that apply to the whole origin of this server, or to the client's credentials for it. No pod may set them.
 */
const ofTheOrigin: ReadonlySet<string> = new Set([
  'alt-svc',
  'audit-id',
  'clear-site-data',
  'location',
  'nel',
  'public-key-pins',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-cookie',
  'set-cookie2',
  'strict-transport-security',
  'warning',
  'www-authenticate',
]);

/** Headers that a client needs to leave HTTP with WebSocket or SPDY. */
const ofSwitching: ReadonlySet<string> = new Set([
  'connection',
  'upgrade',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'x-stream-protocol-version',
]);

/** Pages of pods get an origin of their own, so that their scripts cannot call the API as the user who opened them. */
const sandbox = 'sandbox allow-downloads allow-forms allow-popups allow-scripts';

/**
 * The headers of an agent's answer that is passed on. `streams`: the answer is a log, whose type does not depend on the
 * agent.
 */
export function agentAnswerHeaders(answer: IncomingMessage, { streams }: { readonly streams: boolean }): FlatHeaders {
  const sent = (answer.headers['content-type'] ?? '').toLowerCase();
  const type = streams ? 'text/plain' : inertTypes.test(sent) ? sent : 'text/plain; charset=utf-8';
  const headers: FlatHeaders = [
    'Content-Type',
    type,
    'X-Content-Type-Options',
    'nosniff',
    'Cache-Control',
    'no-cache, private',
  ];
  for (const [name, value] of passedHeaders(answer)) if (ofAgents.has(name)) headers.push(name, value);
  return headers;
}

/** The headers of a pod's answer that is passed on. `location`: that of the answer, as a path of this server. */
export function pageAnswerHeaders(answer: IncomingMessage, location: string | undefined): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of passedHeaders(answer)) {
    if (!ofTheOrigin.has(name) && !name.startsWith('access-control-')) headers.push(name, value);
  }
  headers.push('Content-Security-Policy', sandbox);
  if (location !== undefined) headers.push('Location', location);
  return headers;
}

/** The head of the answer that ends HTTP on a connection. */
export function switchingHead({ rawHeaders }: IncomingMessage, requestId: string): string {
  const lines = ['HTTP/1.1 101 Switching Protocols'];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (ofSwitching.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  lines.push(`Audit-Id: ${requestId}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
