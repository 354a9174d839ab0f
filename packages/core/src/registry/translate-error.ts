import { isStatusError, type QualifiedResource, type StatusError, statusErrors } from '../errors/status-error.ts';
import { isStorageError, type StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Verb } from '../kind/kind-definition.ts';
import type { Status } from '../meta/status.ts';
import type { Logger } from '../runtime/logger.ts';

/** The operation that failed, for the message of the error. */
export interface FailedOperation {
  readonly verb: Verb;
  readonly resource: QualifiedResource;
  /** Name of the object; '' for collections. */
  readonly name: string;
  /** The resourceVersion in the parameters of the operation, if any. */
  readonly revision?: number;
  readonly signal?: AbortSignal;
}

/** The message of a conflict. kubectl and client-go recognise this text. */
export const modifiedText =
  'the object has been modified; please apply your changes to the latest version and try again';

const tooOld = {
  list: 'The resourceVersion for the provided list is too old.',
  watch: 'The resourceVersion for the provided watch is too old.',
} as const;

const interruptions: ReadonlySet<StorageErrorCode> = new Set([
  StorageErrorCode.Unavailable,
  StorageErrorCode.Timeout,
  StorageErrorCode.Closed,
]);

/** 504 for an operation that was aborted by its caller or its deadline, or whose outcome is unknown. */
export function notCompleted(cause?: unknown): StatusError {
  return statusErrors.timeout('request did not complete within the allotted timeout', cause);
}

function fromStorageError(error: StorageError, operation: FailedOperation): StatusError {
  const { resource, name, verb } = operation;
  switch (error.code) {
    case StorageErrorCode.NotFound:
      return statusErrors.notFound(resource, name);
    case StorageErrorCode.AlreadyExists:
      return statusErrors.alreadyExists(resource, name);
    case StorageErrorCode.Conflict:
      return statusErrors.conflict(resource, name, modifiedText);
    case StorageErrorCode.Compacted:
    case StorageErrorCode.EpochChanged:
    case StorageErrorCode.SlowConsumer:
      return statusErrors.expired(verb === 'watch' ? tooOld.watch : tooOld.list);
    case StorageErrorCode.FutureRevision:
      return statusErrors.tooLargeResourceVersion(operation.revision ?? error.revision ?? 0, error.revision ?? 0);
    case StorageErrorCode.ExpiredToken:
    case StorageErrorCode.InvalidToken:
      return statusErrors.expired('The provided continue parameter is too old to display a consistent list result.');
    case StorageErrorCode.TooLarge:
      return statusErrors.tooLarge(`Request entity too large: ${error.message}`);
    case StorageErrorCode.InvalidKey:
      return statusErrors.badRequest(`the name or namespace cannot be stored: ${error.message}`, error);
    case StorageErrorCode.Unavailable:
      // The message may contain details of the storage: the caller is authorized for the operation.
      return statusErrors.serverTimeout(resource, verb, error, error.message);
    // No Retry-After on purpose: clients that obey it would repeat a write that may have happened.
    case StorageErrorCode.OutcomeUnknown:
    case StorageErrorCode.Timeout:
      return notCompleted(error);
    case StorageErrorCode.Closed:
      return statusErrors.serviceUnavailable('the storage is closed', error);
    case StorageErrorCode.Corrupt:
      return statusErrors.internal(error.message, error);
    default: {
      const unknown: never = error.code;
      return statusErrors.internal(`unknown storage failure ${String(unknown)}`, error);
    }
  }
}

/**
 * Converts every error of an operation into the error that the client receives. A StatusError is returned unchanged. An
 * unexpected error, such as one of a hook, becomes a 500 with its cause, never a 404, and is logged.
 */
export function translateError(error: unknown, operation: FailedOperation, logger?: Logger): StatusError {
  if (isStatusError(error)) return error;
  if (isStorageError(error)) return fromStorageError(error, operation);
  if (operation.signal?.aborted) return notCompleted(error);
  const { verb, resource } = operation;
  logger?.error('an operation failed unexpectedly', { verb, ...resource, err: error });
  return statusErrors.internal(error instanceof Error ? error.message : String(error), error);
}

/**
 * The Status of the ERROR event that ends a watch: {@link translateError}, except that every interruption is a 503. A
 * watch changes nothing, so that its client can always repeat it.
 */
export function watchErrorStatus(error: unknown, resource: QualifiedResource): Status {
  if (isStorageError(error) && interruptions.has(error.code))
    return statusErrors.serviceUnavailable('the watch was interrupted, please watch again', error).status;
  return translateError(error, { verb: 'watch', resource, name: '' }).status;
}
