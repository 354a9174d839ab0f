import { isStatusError, isStorageError, type Status, statusErrors } from '@keelson/core';

/** The Status of the ERROR event for whatever ended a watch; api-conventions 7.1, 7.3. */
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
