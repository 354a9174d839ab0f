import {
  type Brand,
  encodeDocument,
  encodeProtobufStatus,
  jsonMediaType,
  negotiate,
  type Offer,
  protobufMediaType,
  type Status,
  type StatusError,
  yamlMediaType,
} from '@keelson/core';
import type { Exchange } from '../exchange.ts';
import { wantsPretty } from '../parameters/pretty.ts';
import { type FlatHeaders, sendBytes } from './send.ts';

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
 * Sends a failure in the form that the client accepts, else as JSON: see docs/reference/api-rules.md#status-objects.
 */
export function sendStatus(exchange: Exchange, { status, code }: StatusError, brand: Brand): void {
  const offers = [json, yaml, { mediaType: protobufMediaType(brand) }];
  const { offer, pretty } = negotiate(exchange.request.headers.accept, offers) ?? { offer: json };
  let body: Buffer;
  if (offer === json) body = encodeDocument('json', status, wantsPretty(exchange, pretty));
  else body = offer === yaml ? encodeDocument('yaml', status, false) : encodeProtobufStatus(status);
  sendBytes(exchange, code, offer.mediaType, body, extraHeaders(exchange, status));
}
