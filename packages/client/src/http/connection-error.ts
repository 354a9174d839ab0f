/**
 * Why there is no usable answer.
 *
 * - `Unreachable`: no connection came about (refused, unknown host, certificate not accepted); the server has seen
 *   nothing.
 * - `Interrupted`: the connection ended before the answer did; the request read only, so nothing has changed.
 * - `OutcomeUnknown`: a change was sent and no complete answer came back. It may or may not have happened: look
 *   before repeating it.
 * - `Timeout`: no answer in time; the request read only.
 * - `Aborted`: the caller's signal ended a request that changes nothing, or that had not been sent.
 * - `BadAnswer`: the bytes that came are not what the protocol says.
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

/** A request over HTTP that got no usable answer; what the server itself refused is a `StatusError`. */
export class ConnectionError extends Error {
  readonly code: ConnectionErrorCode;
  readonly [brand] = true;

  constructor(code: ConnectionErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConnectionError';
    this.code = code;
  }
}

/** True for a {@link ConnectionError} (of the given code, if one is given), also across two copies of this package. */
export function isConnectionError(error: unknown, code?: ConnectionErrorCode): error is ConnectionError {
  return (
    typeof error === 'object' &&
    error !== null &&
    brand in error &&
    (code === undefined || (error as ConnectionError).code === code)
  );
}
