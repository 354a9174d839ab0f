import type { IncomingMessage } from 'node:http';
import { statusErrors } from '@keelson/core';
import type { Exchange } from '../exchange.ts';

/** How much of a body that is too large is read and thrown away, so that its sender gets to see the answer. */
const discardFactor = 4;

/** The client went away before its request was complete; there is nobody to answer. */
export class ClientGone extends Error {
  constructor() {
    super('the client closed the connection before its request was complete');
    this.name = 'ClientGone';
  }
}

const noBytes = Buffer.alloc(0);

/** True when the headers announce no body at all. */
function isBodiless(request: IncomingMessage): boolean {
  return (
    request.headers['transfer-encoding'] === undefined &&
    (request.headers['content-length'] === undefined || request.headers['content-length'] === '0') &&
    request.httpVersionMajor === 1
  );
}

/**
 * A body that has arrived as a whole already, as small ones have when their request's turn comes; undefined when there
 * may be more.
 */
function arrivedBody(request: IncomingMessage, limitBytes: number): Buffer | undefined {
  if (!request.complete || request.readableLength === 0 || request.readableLength > limitBytes) return undefined;
  return (request.read() as Buffer | null) ?? undefined;
}

/**
 * The whole body. 413 when it is longer than `limitBytes`, whether its length was announced or not; a body that goes
 * far beyond the limit is not read to its end and closes the connection. Rejects when the request is aborted before its
 * body has arrived.
 */
export function readBody(exchange: Exchange, limitBytes: number): Promise<Buffer> | Buffer {
  const { request } = exchange;
  if (isBodiless(request)) return noBytes;
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
      signal.removeEventListener('abort', onAbort);
      action();
    };
    // Node stops the delivery of a body whose request has been answered, without an end, an error or a close.
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
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced > limitBytes * discardFactor) {
      settled = true;
      exchange.closeConnection = true;
      reject(tooLarge());
      return;
    }
    signal.addEventListener('abort', onAbort);
    request.on('data', onData);
    request.once('end', () =>
      settle(() => {
        if (size > limitBytes) reject(tooLarge());
        else resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size));
      }),
    );
    request.once('error', () => settle(() => reject(new ClientGone())));
    request.once('close', () => settle(() => reject(new ClientGone())));
  });
}
