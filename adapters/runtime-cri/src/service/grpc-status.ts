import { Metadata, status } from '@grpc/grpc-js';
import { type RuntimeErrorCode, toRuntimeError } from '@keelson/container-runtime';
import { codeKey } from '../connection/cri-errors.ts';

const codes: Readonly<Record<RuntimeErrorCode, status>> = {
  NotFound: status.NOT_FOUND,
  AlreadyExists: status.ALREADY_EXISTS,
  InvalidArgument: status.INVALID_ARGUMENT,
  InvalidState: status.FAILED_PRECONDITION,
  ImageNotFound: status.NOT_FOUND,
  // Daemons have no code for these two either.
  PullFailed: status.UNKNOWN,
  StartFailed: status.UNKNOWN,
  Unsupported: status.UNIMPLEMENTED,
  DeadlineExceeded: status.DEADLINE_EXCEEDED,
  Aborted: status.CANCELLED,
  Unavailable: status.UNAVAILABLE,
  Internal: status.INTERNAL,
};

/** How a call of the service ends that the engine refused. */
export interface Refusal {
  readonly code: status;
  readonly details: string;
  readonly metadata: Metadata;
}

/**
 * The one place where a failure of the engine becomes a status of gRPC; the exact code travels along for clients that
 * know it.
 */
export function refusalOf(error: unknown): Refusal {
  const { code, message } = toRuntimeError(error);
  const metadata = new Metadata();
  metadata.set(codeKey, code);
  return { code: codes[code], details: message, metadata };
}
