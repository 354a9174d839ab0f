/**
 * The reason why a call failed. Callers depend on the code only. The message is for operators and becomes part of the
 * pod status.
 *
 * - `NotFound`: no sandbox, container or file of this name.
 * - `AlreadyExists`: a sandbox or container of the same identity exists and is not removed.
 * - `InvalidArgument`: the configuration can never work as written (bad reference, empty command, escaping path).
 * - `InvalidState`: the subject is not in a state that allows the call (start twice, exec in a container that does
 *   not run).
 * - `ImageNotFound`: the image is not in the store, or the registry does not have it.
 * - `PullFailed`: the image could not be fetched or unpacked; trying again may help.
 * - `StartFailed`: the container's process could not be started (no such file, not executable, no such user).
 * - `Unsupported`: this runtime does not support it on this machine; a retry does not help.
 * - `DeadlineExceeded`: the call, or the command it ran, did not complete within its limit. The started operation
 *   may still complete.
 * - `Aborted`: the caller's signal was aborted. The started operation may still complete.
 * - `Unavailable`: the runtime does not respond; the call may be retried.
 * - `Internal`: any other failure; `cause` contains the original error.
 */
export const RuntimeErrorCode = {
  NotFound: 'NotFound',
  AlreadyExists: 'AlreadyExists',
  InvalidArgument: 'InvalidArgument',
  InvalidState: 'InvalidState',
  ImageNotFound: 'ImageNotFound',
  PullFailed: 'PullFailed',
  StartFailed: 'StartFailed',
  Unsupported: 'Unsupported',
  DeadlineExceeded: 'DeadlineExceeded',
  Aborted: 'Aborted',
  Unavailable: 'Unavailable',
  Internal: 'Internal',
} as const;
export type RuntimeErrorCode = (typeof RuntimeErrorCode)[keyof typeof RuntimeErrorCode];

const brand = Symbol.for('keelson.RuntimeError');

/** A failure of a runtime or an image store; see {@link RuntimeErrorCode}. */
export class RuntimeError extends Error {
  readonly code: RuntimeErrorCode;
  readonly [brand] = true;

  constructor(code: RuntimeErrorCode, message: string, details: { readonly cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'RuntimeError';
    this.code = code;
  }
}

/** True for a {@link RuntimeError} (of the given code, if one is given), also across two copies of this package. */
export function isRuntimeError(error: unknown, code?: RuntimeErrorCode): error is RuntimeError {
  return (
    typeof error === 'object' &&
    error !== null &&
    brand in error &&
    (code === undefined || (error as RuntimeError).code === code)
  );
}

/** Returns a {@link RuntimeError} unchanged, and any other error as cause of an `Internal` one. */
export function toRuntimeError(error: unknown): RuntimeError {
  if (isRuntimeError(error)) return error;
  return new RuntimeError('Internal', error instanceof Error ? error.message : String(error), { cause: error });
}
