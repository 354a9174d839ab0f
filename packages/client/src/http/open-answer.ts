import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import { ConnectionError, isConnectionError } from './connection-error.ts';
import type { Endpoint, WireRequest } from './http-transport.ts';

/** The head of a response whose body has not been read. */
export interface OpenAnswer {
  readonly code: number;
  readonly response: IncomingMessage;
  /** Ends the timeout of the request: the caller reads the response while it arrives. */
  unlimited(): void;
  /** Converts a failure to read the body. */
  failure(cause: unknown): ConnectionError;
  /** Discards the rest of the body. */
  destroy(): void;
}

/** One attempt of a request. */
export interface Attempt {
  readonly endpoint: Endpoint;
  readonly request: WireRequest;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

const inflate = promisify(gunzip);
/** Maximum length of a string, and therefore of a JSON text. */
const maxBodyBytes = 512 * 1024 * 1024 - 1024;

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/**
 * Sends a request and resolves with the head of the response. Fails with a {@link ConnectionError} whose code states
 * whether the server may have acted.
 */
export function openAnswer(attempt: Attempt): Promise<OpenAnswer> {
  const { endpoint, request, body, signal, timeoutMs, clock } = attempt;
  const mutating = request.method !== 'GET';
  let connected = false;
  let timedOut = false;
  const failure = (cause: unknown): ConnectionError => {
    if (isConnectionError(cause)) return cause;
    const what = `${request.method} ${request.path.split('?')[0]} at ${endpoint.origin}`;
    const why = timedOut
      ? `no response within ${timeoutMs} ms`
      : signal.aborted
        ? 'aborted by the caller'
        : messageOf(cause);
    if (mutating && connected) {
      return new ConnectionError(
        'OutcomeUnknown',
        `${what}: sent, but it is unknown whether it was executed: ${why}`,
        cause,
      );
    }
    if (isConnectionError(signal.reason)) return signal.reason;
    if (signal.aborted) return new ConnectionError('Aborted', `${what}: ${why}`, signal.reason ?? cause);
    if (!connected) return new ConnectionError('Unreachable', `${what}: not connected: ${why}`, cause);
    if (timedOut) return new ConnectionError('Timeout', `${what}: ${why}`, cause);
    const malformed = cause instanceof Error && 'code' in cause && String(cause.code).startsWith('HPE_');
    return new ConnectionError(malformed ? 'BadAnswer' : 'Interrupted', `${what}: ${why}`, cause);
  };
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(failure(signal.reason));
      return;
    }
    const sent = endpoint.start(request);
    // Destroyed without an error, because the socket may no longer have an error listener.
    const abort = () => sent.destroy();
    const cancelTimeout = clock.after(timeoutMs, () => {
      timedOut = true;
      sent.destroy();
    });
    addAbortListener(signal, abort);
    // Emitted in every case, after the response has been read or after a failure.
    sent.once('close', () => {
      cancelTimeout();
      removeAbortListener(signal, abort);
    });
    sent.on('error', (error) => reject(failure(error)));
    sent.once('socket', (socket) => {
      if (sent.reusedSocket || !socket.connecting) connected = true;
      else {
        socket.once(endpoint.connectEvent, () => {
          connected = true;
        });
      }
      // Detects a peer that disappeared without closing the connection.
      if (request.stream) socket.setKeepAlive(true, 30_000);
    });
    sent.once('response', (response) => {
      response.on('error', () => {});
      resolve({
        code: response.statusCode ?? 0,
        response,
        unlimited: cancelTimeout,
        failure,
        destroy: () => sent.destroy(),
      });
    });
    sent.end(body);
  });
}

/** Reads a complete body and decompresses it. */
export async function readBody(answer: OpenAnswer): Promise<Buffer> {
  const { response } = answer;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBodyBytes)
        throw new ConnectionError('BadAnswer', `the response is longer than ${maxBodyBytes} bytes`);
      chunks.push(chunk);
    }
    if (!response.complete) throw new Error('the response is incomplete');
  } catch (cause) {
    answer.destroy();
    throw answer.failure(cause);
  }
  const body = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size);
  if (response.headers['content-encoding'] !== 'gzip') return body;
  try {
    return await inflate(body, { maxOutputLength: maxBodyBytes });
  } catch (cause) {
    throw new ConnectionError('BadAnswer', `the compressed response cannot be read: ${messageOf(cause)}`, cause);
  }
}
