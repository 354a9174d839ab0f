import { createHash } from 'node:crypto';
import { statusErrors } from '@keelson/core';
import {
  type Brand,
  encodeDocument,
  encodeProtobufDocument,
  jsonMediaType,
  negotiate,
  type Offer,
  protobufMediaType,
  yamlMediaType,
} from '@keelson/core/internal';
import type { Exchange } from '../exchange/exchange.ts';
import { type FlatHeaders, sendBytes } from '../exchange/exchange.ts';
import { sendNotModified, sendWhole } from '../exchange/send.ts';

const jsonOffers: readonly Offer[] = [{ mediaType: jsonMediaType }, { mediaType: yamlMediaType }];

/** Sends a document that is created for this request, as JSON or YAML. */
export function sendDocument(exchange: Exchange, document: object): void {
  send(exchange, document, jsonOffers);
}

/** Sends a document of the API machinery, such as a resource list, as JSON, YAML or protobuf. */
export function sendApiDocument(exchange: Exchange, document: object, brand: Brand): void {
  send(exchange, document, [...jsonOffers, { mediaType: protobufMediaType(brand) }]);
}

function send(exchange: Exchange, document: object, offers: readonly Offer[]): void {
  const chosen = negotiate(exchange.request.headers.accept, offers);
  if (chosen === undefined) throw statusErrors.notAcceptable(offers.map((offer) => offer.mediaType));
  const { mediaType } = chosen.offer;
  if (mediaType !== jsonMediaType && mediaType !== yamlMediaType) {
    sendBytes(exchange, 200, mediaType, encodeProtobufDocument(document));
    return;
  }
  const media = mediaType === yamlMediaType ? 'yaml' : 'json';
  sendBytes(
    exchange,
    200,
    mediaType,
    encodeDocument(media, document, media === 'json' && exchange.wantsPretty(chosen.pretty)),
  );
}

/** A document that does not change until the kinds change, and its hash. */
export interface DocumentFile {
  readonly bytes: Buffer;
  /** Hex digest of the bytes. */
  readonly hash: string;
}

export function documentFile(document: object): DocumentFile {
  const bytes = Buffer.from(`${JSON.stringify(document)}\n`);
  return { bytes, hash: createHash('sha512').update(bytes).digest('hex').toUpperCase() };
}

/** True when the client has this document already. Weak tags and `*` match too. */
function isKnown(exchange: Exchange, hash: string): boolean {
  const sent = exchange.request.headers['if-none-match'];
  return (sent ?? '').split(',').some((tag) => ['*', `"${hash}"`, `W/"${hash}"`].includes(tag.trim()));
}

/** Sends a file with its ETag, or 304 when the client has it. `headers` replace the default Cache-Control. */
export function sendFile(
  exchange: Exchange,
  contentType: string,
  document: DocumentFile,
  headers: FlatHeaders,
  gzipBytes: number,
): Promise<void> | void {
  const all: FlatHeaders = ['ETag', `"${document.hash}"`, ...headers];
  exchange.cacheControl = undefined;
  if (isKnown(exchange, document.hash)) return sendNotModified(exchange, all);
  return sendWhole(exchange, 200, contentType, document.bytes, gzipBytes, all);
}
