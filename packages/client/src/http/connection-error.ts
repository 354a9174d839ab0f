/**
 * Why there is no usable response.
 *
 * - `Unreachable`: the connection failed (refused, unknown host, certificate rejected); the server has not received the
 * request.
 * - `Interrupted`: the connection ended before the response was complete; the request was a read.
 * - `OutcomeUnknown`: a change was sent and no complete response was received. It may have been applied: check before
 * repeating it.
 * - `Timeout`: no response in time; the request was a read.
 * - `Aborted`: the caller's signal aborted a read, or a request that had not been sent.
 * - `BadAnswer`: the response violates the protocol.
 * - `Closed`: the client was closed.
 */
export const ConnectionErrorCode = {
  Unreachable: 'Unreachable',
  Interrupted: 'Interrupted',
  OutcomeUnknown: 'OutcomeUnknown',
  Timeout: 'Timeout',
  Aborted: 'Aborted',
  BadAnswer: 'BadAnswer',
  Closed: 'Closed',
} as const;
export type ConnectionErrorCode = (typeof ConnectionErrorCode)[keyof typeof ConnectionErrorCode];

const brand = Symbol.for('keelson.ConnectionError');

/** An HTTP request without a usable response; errors reported by the server are `StatusError`s. */
export class ConnectionError extends Error {
  readonly code: ConnectionErrorCode;
  readonly [brand] = true;

  constructor(code: ConnectionErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConnectionError';
    this.code = code;
  }
}

/** True for a {@link ConnectionError}, optionally of a given code, also for one of another copy of this package. */
export function isConnectionError(error: unknown, code?: ConnectionErrorCode): error is ConnectionError {
  return (
    typeof error === 'object' &&
    error !== null &&
    brand in error &&
    (code === undefined || (error as ConnectionError).code === code)
  );
}
