import type { FieldError } from './field-error.ts';

/** Causes that one answer lists at most. */
export const maxListedErrors = 100;

/**
 * True when a collection needs no further errors, and loops over client data may end: a body within the size limit can
 * be wrong in hundreds of thousands of places. It holds one more than an answer lists, so that the answer can state
 * that its list is incomplete.
 */
export function isFull(errors: readonly FieldError[]): boolean {
  return errors.length > maxListedErrors;
}

/**
 * Adds errors one by one until the collection is full. A call with spread arguments would fail for a very long list.
 */
export function addErrors(errors: FieldError[], more: readonly FieldError[]): void {
  for (const error of more) {
    if (isFull(errors)) return;
    errors.push(error);
  }
}
