import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type KindDefinition, type Status, type StatusError, statusErrors } from '@keelson/core';
import {
  type Brand,
  encodeDocument,
  encodeProtobufStatus,
  jsonMediaType,
  negotiate,
  type Offer,
  protobufMediaType,
  yamlMediaType,
} from '@keelson/core/internal';
import { type Exchange, type FlatHeaders, sendBytes, sendHead } from './exchange.ts';

const noHeaders: FlatHeaders = [];
const compress = promisify(gzip);

/** True when the client accepts gzip: named or by `*`, with a weight above zero. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  if (header === undefined) return false;
  const text = (typeof header === 'string' ? header : header.join(',')).toLowerCase();
  let star = false;
  for (const clause of text.split(',')) {
    const [name = '', ...parameters] = clause.split(';').map((part) => part.trim());
    const refused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    if (name === 'gzip' || name === 'x-gzip') return !refused;
    if (name === '*') star = !refused;
  }
  return star;
}

/** Adds to an existing Vary header, because HTTP/2 keeps only the last header of a name. */
function varyByEncoding(headers: FlatHeaders): FlatHeaders {
  const at = headers.indexOf('Vary');
  if (at === -1) return [...headers, 'Vary', 'Accept-Encoding'];
  return headers.with(at + 1, `${String(headers[at + 1])}, Accept-Encoding`);
}

/**
 * {@link sendBytes}, compressed off the event loop when the body is larger than `gzipBytes` and the client accepts
 * gzip.
 */
export function sendWhole(
  exchange: Exchange,
  code: number,
  contentType: string,
  body: Buffer,
  gzipBytes: number,
  extra: FlatHeaders = noHeaders,
): Promise<void> | void {
  if (body.length <= gzipBytes) return sendBytes(exchange, code, contentType, body, extra);
  const vary = varyByEncoding(extra);
  if (exchange.request.method === 'HEAD' || !acceptsGzip(exchange.request.headers['accept-encoding'])) {
    return sendBytes(exchange, code, contentType, body, vary);
  }
  return compress(body, { level: 1 }).then((small) =>
    sendBytes(exchange, code, contentType, small, [...vary, 'Content-Encoding', 'gzip']),
  );
}

/** A plain text response for requests that name no resource. */
export function sendText(exchange: Exchange, code: number, text: string, extra: FlatHeaders = []): void {
  sendBytes(exchange, code, 'text/plain; charset=utf-8', Buffer.from(text), [
    'X-Content-Type-Options',
    'nosniff',
    ...extra,
  ]);
}

/** 304 without Content-Type and Content-Length, because caches replace their stored headers by those of a 304. */
export function sendNotModified(exchange: Exchange, headers: FlatHeaders): void {
  if (sendHead(exchange, 304, [...headers, 'Audit-Id', exchange.requestId])) exchange.response.end();
}

/** The response for an unknown path. */
export function sendNotFound(exchange: Exchange): void {
  sendText(exchange, 404, '404 page not found\n');
}

/**
 * The response for a path of the resource API that names nothing: text, or a Status within the groups of built-in
 * `kinds`. @throws StatusError 404
 */
export function sendNoSuchResource(exchange: Exchange, group: string, kinds: readonly KindDefinition[]): void {
  if (kinds.some((kind) => kind.structural && kind.group === group)) throw statusErrors.noSuchResource();
  sendNotFound(exchange);
}

/** The response when a limit of concurrent or waiting requests is exceeded. */
export function sendTooMany(exchange: Exchange): void {
  sendText(exchange, 429, 'Too many requests, please try again later.\n', ['Retry-After', '1']);
}

const json: Offer = { mediaType: jsonMediaType };
const yaml: Offer = { mediaType: yamlMediaType };

function extraHeaders(exchange: Exchange, status: Status): FlatHeaders {
  const headers: FlatHeaders = ['X-Content-Type-Options', 'nosniff'];
  const seconds = status.details?.retryAfterSeconds;
  if (seconds !== undefined && seconds > 0) headers.push('Retry-After', String(seconds));
  if (exchange.allow !== undefined) headers.push('Allow', exchange.allow);
  return headers;
}

/**
 * Sends a failure in a format that the client accepts, otherwise as JSON: see
 * docs/reference/api-rules.md#status-objects.
 */
export function sendStatus(exchange: Exchange, { status, code }: StatusError, brand: Brand): void {
  const offers = [json, yaml, { mediaType: protobufMediaType(brand) }];
  const { offer, pretty } = negotiate(exchange.request.headers.accept, offers) ?? { offer: json };
  let body: Buffer;
  if (offer === json) body = encodeDocument('json', status, exchange.wantsPretty(pretty));
  else body = offer === yaml ? encodeDocument('yaml', status, false) : encodeProtobufStatus(status);
  sendBytes(exchange, code, offer.mediaType, body, extraHeaders(exchange, status));
}
