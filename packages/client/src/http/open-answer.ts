import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core';
import { ConnectionError, isConnectionError } from './connection-error.ts';
import type { Endpoint, WireRequest } from './endpoint.ts';

/** The head of an answer; its body is still to be read. */
export interface OpenAnswer {
  readonly code: number;
  readonly response: IncomingMessage;
  /** From here on the answer may take any time: its caller means to follow it. */
  unlimited(): void;
  /** What a failure to read the body means. */
  failure(cause: unknown): ConnectionError;
  /** Gives up what is not read yet. */
  destroy(): void;
}

/** One attempt at a request. */
export interface Attempt {
  readonly endpoint: Endpoint;
  readonly request: WireRequest;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

const inflate = promisify(gunzip);
/** No string can be longer, so no JSON text can. */
const maxBodyBytes = 512 * 1024 * 1024 - 1024;

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/**
 * Sends a request and resolves when the head of the answer is there. Fails with a {@link ConnectionError} whose code
 * says whether the server may have acted.
 */
export function openAnswer(attempt: Attempt): Promise<OpenAnswer> {
  const { endpoint, request, body, signal, timeoutMs, clock } = attempt;
  const mutating = request.method !== 'GET';
  let connected = false;
  let late = false;
  const failure = (cause: unknown): ConnectionError => {
    if (isConnectionError(cause)) return cause;
    const what = `${request.method} ${request.path.split('?')[0]} at ${endpoint.origin}`;
    const why = late ? `no answer within ${timeoutMs} ms` : signal.aborted ? 'aborted by the caller' : messageOf(cause);
    if (mutating && connected) {
      return new ConnectionError(
        'OutcomeUnknown',
        `${what}: sent, but it is unknown whether it was carried out: ${why}`,
        cause,
      );
    }
    if (isConnectionError(signal.reason)) return signal.reason;
    if (signal.aborted) return new ConnectionError('Aborted', `${what}: ${why}`, signal.reason ?? cause);
    if (!connected) return new ConnectionError('Unreachable', `${what}: not connected: ${why}`, cause);
    if (late) return new ConnectionError('Timeout', `${what}: ${why}`, cause);
    const malformed = cause instanceof Error && 'code' in cause && String(cause.code).startsWith('HPE_');
    return new ConnectionError(malformed ? 'BadAnswer' : 'Interrupted', `${what}: ${why}`, cause);
  };
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(failure(signal.reason));
      return;
    }
    const sent = endpoint.start(request);
    // Without an error: the socket may already belong to nobody, and would throw it.
    const abort = () => sent.destroy();
    const cancelTimeout = clock.after(timeoutMs, () => {
      late = true;
      sent.destroy();
    });
    addAbortListener(signal, abort);
    // Emitted in every case, after the answer has been read or when there is nothing more to come.
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
      // A peer that vanished without a word is noticed although nothing is sent any more.
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

/** Reads a whole body, decompressed. */
export async function readBody(answer: OpenAnswer): Promise<Buffer> {
  const { response } = answer;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBodyBytes)
        throw new ConnectionError('BadAnswer', `the answer is longer than ${maxBodyBytes} bytes`);
      chunks.push(chunk);
    }
    if (!response.complete) throw new Error('the answer was cut off');
  } catch (cause) {
    answer.destroy();
    throw answer.failure(cause);
  }
  const body = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size);
  if (response.headers['content-encoding'] !== 'gzip') return body;
  try {
    return await inflate(body, { maxOutputLength: maxBodyBytes });
  } catch (cause) {
    throw new ConnectionError('BadAnswer', `the compressed answer cannot be read: ${messageOf(cause)}`, cause);
  }
}
