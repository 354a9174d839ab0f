import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { type KindDefinition, statusErrors } from '@keelson/core';
import {
  type Body,
  type Brand,
  bodyMedia,
  type DeleteParameters,
  deleteOptionsSchema,
  isDocumentError,
  type PatchBody,
  type ProtobufBodyType,
  parseJson,
  parseProtobufBody,
  parseYaml,
  patchMediaTypes,
  patchTypeOfContent,
  protobufMediaType,
} from '@keelson/core/internal';
import type { Exchange } from './exchange.ts';
import { Http2Request } from './http2-messages.ts';
import { deleteParametersFromBody, deleteParametersFromQuery } from './query-parameters.ts';

/**
 * The end of the user agent of client-go, whose raw calls (`kubectl create --raw`) send bodies without a content type.
 * A web page cannot set it without a preflight request.
 */
const clientGo = /\) kubernetes\//;

/**
 * True for a body without a content type that a web page may have sent. Browsers send such a POST to another site
 * without a preflight request, unlike other methods, types and user agents. Browsers never add a bearer token.
 */
function maybeOfPage(request: IncomingMessage): boolean {
  const { method, headers } = request;
  if (method !== 'POST' || headers.authorization !== undefined) return false;
  return mayHaveBody(request) && !clientGo.test(headers['user-agent'] ?? '');
}

/**
 * Format of a body by its Content-Type. Without one it is JSON, as in kube-apiserver, unless a web page may be the
 * sender (docs/adr/0029). @throws StatusError 415
 */
export function bodyFormat(request: IncomingMessage, brand: Brand): Body['format'] {
  const contentType = request.headers['content-type'];
  const untyped = contentType === undefined || contentType.trim() === '';
  const media = untyped && maybeOfPage(request) ? undefined : bodyMedia(contentType, brand);
  if (media === undefined) {
    throw statusErrors.unsupportedMediaType(['application/json', 'application/yaml', protobufMediaType(brand)]);
  }
  return media;
}

/**
 * Type of a patch by its Content-Type, which is required. @throws StatusError 415 for a type that the kind does not
 * offer
 */
export function patchType(contentType: string | undefined, kind: KindDefinition): PatchBody['type'] {
  const type = patchTypeOfContent(contentType);
  if (type === undefined || (type === 'strategic' && !kind.structural)) {
    const offered = Object.entries(patchMediaTypes).filter(
      ([, candidate]) => candidate !== 'strategic' || kind.structural,
    );
    throw statusErrors.unsupportedMediaType(offered.map(([mediaType]) => mediaType));
  }
  return type;
}

/** A body up to this multiple of the limit is read and discarded, so that its sender receives the response. */
const discardFactor = 4;

/** The client disconnected before its request was complete, so that no response can be sent. */
export class ClientGone extends Error {
  constructor() {
    super('the client closed the connection before its request was complete');
    this.name = 'ClientGone';
  }
}

const noBytes = Buffer.alloc(0);

/** True when the request has a body, or may have one. */
export function mayHaveBody(request: IncomingMessage): boolean {
  const { headers } = request;
  if (headers['transfer-encoding'] !== undefined) return true;
  if (headers['content-length'] !== undefined) return headers['content-length'] !== '0';
  // Only requests of HTTP/2 have a stream.
  return (request as unknown as Partial<Http2ServerRequest>).stream?.endAfterHeaders === false;
}

/**
 * A body that has been received completely, as small bodies are when the turn of their request comes; undefined when
 * more bytes may follow.
 */
function arrivedBody(request: IncomingMessage | Http2Request, limitBytes: number): Buffer | undefined {
  if (request instanceof Http2Request) return request.arrived(limitBytes);
  if (!request.complete || request.readableLength === 0 || request.readableLength > limitBytes) return undefined;
  const first = request.read() as Buffer;
  if (request.readableLength === 0) return first;
  // Since Node 26 each read returns one chunk of those that have arrived.
  const chunks = [first];
  while (request.readableLength > 0) chunks.push(request.read() as Buffer);
  return Buffer.concat(chunks);
}

/**
 * The complete body. A body longer than `limitBytes` is rejected with 413. A body far beyond the limit is not read to
 * its end, and its connection is closed. Rejects when the request is aborted first.
 */
export function readBody(exchange: Exchange, limitBytes: number): Promise<Buffer> | Buffer {
  const { request } = exchange;
  if (!mayHaveBody(request)) return noBytes;
  if (request.destroyed) return Promise.reject(new ClientGone());
  const arrived = arrivedBody(request, limitBytes);
  if (arrived !== undefined) return arrived;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let settled = false;
    const { signal } = exchange;
    const settle = (action: () => void) => {
      if (settled) return;
      settled = true;
      request.off('data', onData);
      request.off('readable', onReadable);
      signal.removeEventListener('abort', onAbort);
      action();
    };
    // Node stops the delivery of the body when the request has been answered, without an end, error or close event.
    const onAbort = () => settle(() => reject(exchange.abortedWith ?? new ClientGone()));
    const tooLarge = () => statusErrors.tooLarge(`Request entity too large: limit is ${limitBytes}`);
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limitBytes) chunks.push(chunk);
      else {
        chunks.length = 0;
        if (size > limitBytes * discardFactor) {
          settle(() => {
            exchange.closeConnection = true;
            request.pause();
            reject(tooLarge());
          });
        }
      }
    };
    // Later than the frame that ends the body, so that reading does not end the stream: see Http2Request.arrived.
    const onReadable = () => void setImmediate(takeArrived);
    const takeArrived = () => {
      const bytes = settled ? undefined : arrivedBody(request, limitBytes);
      if (bytes !== undefined) settle(() => resolve(bytes));
    };
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced > limitBytes * discardFactor) {
      settled = true;
      exchange.closeConnection = true;
      reject(tooLarge());
      return;
    }
    signal.addEventListener('abort', onAbort);
    if (request instanceof Http2Request && request.holdsBody(limitBytes)) request.on('readable', onReadable);
    else {
      request.on('data', onData);
      request.once('end', () =>
        settle(() => {
          if (size > limitBytes) reject(tooLarge());
          else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size));
        }),
      );
    }
    request.once('error', () => settle(() => reject(new ClientGone())));
    request.once('close', () => settle(() => reject(new ClientGone())));
  });
}

/** Reads bodies of requests within the limit. */
export class RequestInput {
  readonly #limitBytes: number;
  readonly #brand: Brand;

  constructor(limitBytes: number, brand: Brand) {
    this.#limitBytes = limitBytes;
    this.#brand = brand;
  }

  /** The body for the service to decode; `type` is for the audit record. @throws StatusError 413, 415 */
  async body(exchange: Exchange, type: ProtobufBodyType): Promise<Body> {
    const format = this.#format(exchange);
    const body: Body = { bytes: await readBody(exchange, this.#limitBytes), format };
    exchange.audit?.received(body, type);
    return body;
  }

  /** @throws StatusError 413 */
  async patch(exchange: Exchange, type: PatchBody['type'], kind: ProtobufBodyType): Promise<PatchBody> {
    const patch: PatchBody = { type, bytes: await readBody(exchange, this.#limitBytes) };
    exchange.audit?.received(patch, kind);
    return patch;
  }

  /**
   * The options of a DELETE from its body, or from the query when it has no body: see
   * docs/reference/api-rules.md#options-of-a-delete.
   *
   * @throws StatusError 400, 413, 415, 422
   */
  async deleteParameters(exchange: Exchange, apiVersion: string): Promise<DeleteParameters> {
    const bytes = await readBody(exchange, this.#limitBytes);
    if (bytes.length === 0) {
      const { query, verb } = exchange.attributes;
      return deleteParametersFromQuery(query, verb === 'deletecollection');
    }
    const format = this.#format(exchange);
    exchange.audit?.received({ bytes, format }, deleteOptionsType);
    try {
      return deleteParametersFromBody(deleteOptions(bytes, format), apiVersion);
    } catch (error) {
      if (!isDocumentError(error)) throw error;
      throw statusErrors.badRequest(`DeleteOptions in the body cannot be decoded: ${error.message}`, error);
    }
  }

  #format(exchange: Exchange): Body['format'] {
    return bodyFormat(exchange.request, this.#brand);
  }
}

/** DeleteOptions have the same protobuf schema in all groups. */
const deleteOptionsType: ProtobufBodyType = { kind: 'DeleteOptions', schema: deleteOptionsSchema };

function deleteOptions(bytes: Buffer, format: Body['format']): unknown {
  if (format === 'protobuf') return parseProtobufBody(bytes, deleteOptionsType);
  return (format === 'yaml' ? parseYaml(bytes) : parseJson(bytes)).value;
}
