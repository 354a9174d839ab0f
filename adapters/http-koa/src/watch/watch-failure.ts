import { isStatusError, isStorageError, type Status, statusErrors } from '@keelson/core';

/** The Status of the ERROR event that ends a watch: see docs/reference/api-rules.md#end-of-a-watch. */
export function watchFailure(error: unknown): Status {
  if (isStatusError(error)) return error.status;
  if (isStorageError(error)) {
    switch (error.code) {
      case 'Compacted':
      case 'EpochChanged':
      case 'SlowConsumer':
        return statusErrors.expired('The resourceVersion for the provided watch is too old.').status;
      case 'Unavailable':
      case 'Timeout':
      case 'Closed':
        return statusErrors.serviceUnavailable('the watch was interrupted, please watch again').status;
      default:
        return statusErrors.internal(`the watch ended with ${error.code}`).status;
    }
  }
  return statusErrors.internal('the watch ended unexpectedly').status;
}
