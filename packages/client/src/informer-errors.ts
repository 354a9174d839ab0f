import { isStatusError, StatusReason } from '@keelson/core';
import { isTooLargeResourceVersion } from './http/answer-error.ts';
import { isConnectionError } from './http/connection-error.ts';

export { isTooLargeResourceVersion };

/** True when the server no longer has the history that was asked for. */
export function isGone(error: unknown): boolean {
  if (!isStatusError(error)) return false;
  return error.reason === StatusReason.Expired || error.reason === StatusReason.Gone || error.code === 410;
}

/**
 * True when a watch failed in a way that trying it again from the same resourceVersion will not mend. Connections that
 * break and servers that are busy are worth another attempt; so is everything of the kind 5xx.
 */
export function needsNewList(error: unknown): boolean {
  if (isConnectionError(error)) return error.code === 'BadAnswer';
  return !isStatusError(error) || (error.code !== 429 && error.code < 500);
}

/**
 * True when both are numbers and the first is the smaller one; compared as texts, because 64 bits do not fit into a
 * number.
 */
export function isOlderVersion(version: string, than: string): boolean {
  if (!/^[1-9]\d*$/.test(version) || !/^[1-9]\d*$/.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}
