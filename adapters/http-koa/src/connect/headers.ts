import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { hopByHopHeaders } from '@keelson/core/internal';
import type { FlatHeaders } from '../exchange/exchange.ts';
import { mayHaveBody } from '../exchange/request-body.ts';
import { subprotocolsOf } from '../exchange/web-socket.ts';

/** Request headers that are meant for this server only. With these the upstream could act as the client. */
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
 * Prefixes of headers by which front proxies assert an identity or an origin. An upstream that trusts this server would
 * trust them too.
 */
const assertedByProxies = ['impersonate-', 'x-remote-', 'x-forwarded-'];

/** Headers of a conditional request. Responses of agents carry no validators, so a client could not use a 304. */
const conditional: ReadonlySet<string> = new Set([
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
]);

type Values = Map<string, string | string[]>;

/**
 * Request headers by lower-case name, without hop-by-hop headers and pseudo-headers of HTTP/2. Repeated headers keep
 * separate values.
 */
export function passedHeaders({ rawHeaders, headers }: IncomingMessage): Values {
  const isHopByHop = hopByHopHeaders(headers.connection);
  const values: Values = new Map();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (isHopByHop(name) || name.startsWith(':')) continue;
    const value = rawHeaders[i + 1] ?? '';
    const before = values.get(name);
    values.set(name, before === undefined ? value : [...(typeof before === 'string' ? [before] : before), value]);
  }
  return values;
}

export interface RequestHeaderOptions {
  /** Forward the request to upgrade the connection. */
  readonly upgrade: boolean;
  /** The upstream is a node agent. */
  readonly agent: boolean;
}

/** The headers of a forwarded request. */
export function requestHeaders(
  request: IncomingMessage,
  { upgrade, agent }: RequestHeaderOptions,
): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of passedHeaders(request)) {
    if (forThisServer.has(name) || assertedByProxies.some((prefix) => name.startsWith(prefix))) continue;
    if (agent && conditional.has(name)) continue;
    headers[name] =
      name === 'sec-websocket-protocol'
        ? [value]
            .flat()
            .map((protocols) => subprotocolsOf(protocols).join(', '))
            .filter((rest) => rest !== '')
        : value;
  }
  if (upgrade) {
    headers['connection'] = 'Upgrade';
    headers['upgrade'] = request.headers.upgrade;
  }
  // The length is set again even if the client named it in `Connection`: the upstream would parse a body without a
  // length as further requests.
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
 * Content types that no browser executes. A response of an agent has the origin of the API, so a page in it would have
 * the permissions of the user whose browser shows it.
 */
const inertTypes = new RegExp(
  '^(?:text/(?:plain|csv)|application/(?:json|yaml|octet-stream|openmetrics-text|gzip|x-gzip|x-tar|zip|' +
    'vnd\\.google\\.protobuf|vnd\\.kubernetes\\.protobuf))(?:;[\\w .;,="/+-]*)?$',
);

/**
 * Headers of an agent's response that are forwarded. All others, such as cookies and CORS headers, would apply to this
 * server.
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
 * Headers that apply to the whole origin of this server, or to the client's credentials for it. Pods cannot set them.
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

/** Headers that a client requires to switch to WebSocket or SPDY. */
const ofSwitching: ReadonlySet<string> = new Set([
  'connection',
  'upgrade',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'x-stream-protocol-version',
]);

/**
 * Gives web pages of pods an origin of their own, so that their scripts cannot call the API with the permissions of the
 * user.
 */
const sandbox = 'sandbox allow-downloads allow-forms allow-popups allow-scripts';

/**
 * The headers of an agent's response that are forwarded.
 * @param streams true for a log, whose content type does not depend on the agent
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

/**
 * The headers of a pod's response that are forwarded.
 * @param location the Location header of the response as a path of this server
 */
export function pageAnswerHeaders(answer: IncomingMessage, location: string | undefined): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of passedHeaders(answer)) {
    if (!ofTheOrigin.has(name) && !name.startsWith('access-control-')) headers.push(name, value);
  }
  headers.push('Content-Security-Policy', sandbox);
  if (location !== undefined) headers.push('Location', location);
  return headers;
}

/** The headers of an aggregated server's response that are forwarded; it is as trusted as this server. */
export function apiAnswerHeaders(answer: IncomingMessage): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of passedHeaders(answer)) {
    if (name === 'warning' || (!ofTheOrigin.has(name) && !name.startsWith('access-control-')))
      headers.push(name, value);
  }
  return headers;
}

/** The head of the 101 response to the client. */
export function switchingHead({ rawHeaders }: IncomingMessage, requestId: string): string {
  const lines = ['HTTP/1.1 101 Switching Protocols'];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (ofSwitching.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  lines.push(`Audit-Id: ${requestId}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
