import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { FlatHeaders } from '../answer/send.ts';

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

/** What was meant for this server: whoever answers shall not be able to act as the client. */
const forThisServer: ReadonlySet<string> = new Set(['host', 'authorization', 'expect', 'audit-id']);

type Values = Map<string, string | string[]>;

/** Headers by lower-case name; repeated ones stay apart. Those that `Connection` names belong to the connection. */
function passedHeaders({ rawHeaders, headers }: IncomingMessage): Values {
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

/** The headers with which a request is passed on. `upgrade`: with its wish to leave HTTP. */
export function requestHeaders(request: IncomingMessage, upgrade: boolean): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of passedHeaders(request)) {
    if (!forThisServer.has(name) && !name.startsWith('impersonate-')) headers[name] = value;
  }
  if (upgrade) {
    headers['connection'] = 'Upgrade';
    headers['upgrade'] = request.headers.upgrade;
  }
  // Said anew, whatever the client calls a header of the connection: a body without a length would be read as further requests.
  const length = request.headers['content-length'];
  delete headers['content-length'];
  if (mayHaveBody(request)) {
    if (length === undefined || request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
    else headers['content-length'] = length;
  }
  return headers;
}

/** The headers of an answer that is passed on. */
export function answerHeadersOf(answer: IncomingMessage, requestId: string): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of passedHeaders(answer)) if (name !== 'audit-id') headers.push(name, value);
  headers.push('Audit-Id', requestId);
  return headers;
}

/** The head of the answer that ends HTTP on a connection, as it came. */
export function switchingHead(answer: IncomingMessage, requestId: string): string {
  const { statusMessage, rawHeaders } = answer;
  const lines = [`HTTP/1.1 101 ${statusMessage || 'Switching Protocols'}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  lines.push(`Audit-Id: ${requestId}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
