import {
  encodeDocument,
  jsonMediaType,
  negotiate,
  type Offer,
  type Status,
  type StatusError,
  yamlMediaType,
} from '@keelson/core';
import type { Exchange } from '../exchange.ts';
import { wantsPretty } from '../parameters/pretty.ts';
import { type FlatHeaders, sendBytes } from './send.ts';

const json: Offer = { mediaType: jsonMediaType };
const statusOffers: readonly Offer[] = [json, { mediaType: yamlMediaType }];

function extraHeaders(exchange: Exchange, status: Status): FlatHeaders {
  const headers: FlatHeaders = ['X-Content-Type-Options', 'nosniff'];
  const seconds = status.details?.retryAfterSeconds;
  if (seconds !== undefined && seconds > 0) headers.push('Retry-After', String(seconds));
  if (exchange.allow !== undefined) headers.push('Allow', exchange.allow);
  return headers;
}

/** Answers with a failure, in the form the client accepts; JSON when it accepts none that we have (api-conventions 1.1). */
export function sendStatus(exchange: Exchange, { status, code }: StatusError): void {
  const { offer, pretty } = negotiate(exchange.request.headers.accept, statusOffers) ?? { offer: json };
  const body =
    offer === json ? encodeDocument('json', status, wantsPretty(exchange, pretty)) : encodeDocument('yaml', status, false);
  sendBytes(exchange, code, offer.mediaType, body, extraHeaders(exchange, status));
}
