import { isStatusError, StatusReason } from '@keelson/core';
import { isTooLargeResourceVersion } from './http/answer-error.ts';
import { isConnectionError } from './http/connection-error.ts';

export { isTooLargeResourceVersion };

/** True when the server no longer has the requested history. */
export function isGone(error: unknown): boolean {
  if (!isStatusError(error)) return false;
  return error.reason === StatusReason.Expired || error.reason === StatusReason.Gone || error.code === 410;
}

/**
 * True when repeating a failed watch from the same resourceVersion cannot succeed. Broken connections, busy servers and
 * all 5xx responses can be repeated.
 */
export function needsNewList(error: unknown): boolean {
  if (isConnectionError(error)) return error.code === 'BadAnswer';
  return !isStatusError(error) || (error.code !== 429 && error.code < 500);
}

/**
 * Compares two decimal numbers as text, because 64-bit integers exceed the precision of numbers. False when one is not
 * a number.
 */
export function isOlderVersion(version: string, than: string): boolean {
  if (!/^[1-9]\d*$/.test(version) || !/^[1-9]\d*$/.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}
