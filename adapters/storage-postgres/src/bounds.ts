import { type Key, type KeyRange, OrderedRange } from '@keelson/core';

/** Keys in `[start, end)`, in words that the database can hold. */
export interface Bounds {
  readonly start: string;
  readonly end: string;
}

/** No key holds U+0000, so this is the first that can follow `key`. */
export function after(key: Key): string {
  return `${key}\u0001`;
}

/**
 * The bounds of a range. A bound may hold U+0000, which text in the database cannot; since keys do not, such a bound
 * lies just behind the text in front of it.
 *
 * @throws StorageError `InvalidKey` when a bound is no text or longer than any key.
 */
export function boundsOf(range: KeyRange): Bounds {
  new OrderedRange(range);
  const start = speakable(range.start);
  const exclusive = range.startExclusive === true && start === range.start;
  return { start: exclusive ? after(start) : start, end: speakable(range.end) };
}

function speakable(bound: string): string {
  const nul = bound.indexOf('\0');
  return nul === -1 ? bound : after(bound.slice(0, nul));
}
