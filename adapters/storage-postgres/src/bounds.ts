import { type Key, type KeyRange, OrderedRange } from '@keelson/core/storage-adapter';

/** Keys in `[start, end)`, as text that the database can store. */
export interface Bounds {
  readonly start: string;
  readonly end: string;
}

/** Returns the first possible key after `key`. No key contains U+0000. */
export function after(key: Key): string {
  return `${key}\u0001`;
}

/**
 * Returns the bounds of a range. A bound may contain U+0000, which text in the database cannot. Since no key contains
 * it, such a bound is equivalent to the first possible key after the text before U+0000.
 *
 * @throws StorageError `InvalidKey` when a bound is not valid text or longer than any key
 */
export function boundsOf(range: KeyRange): Bounds {
  new OrderedRange(range);
  const start = storableBound(range.start);
  const exclusive = range.startExclusive === true && start === range.start;
  return { start: exclusive ? after(start) : start, end: storableBound(range.end) };
}

function storableBound(bound: string): string {
  const nul = bound.indexOf('\0');
  return nul === -1 ? bound : after(bound.slice(0, nul));
}
