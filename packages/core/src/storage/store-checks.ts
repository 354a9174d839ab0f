import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { Key, KeyRange, Revision } from './store.ts';

/** Largest size of a key in the contract. A store may accept longer keys, but callers must not depend on it. */
export const maxKeyBytes = 1024;

const outsideOrder = /[\ud800-\uffff]/;
const surrogate = /[\ud800-\udfff]/;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * A string whose code-unit order is the UTF-8 byte order of `text`. The two orders differ only where surrogates (code
 * points above U+FFFF) meet U+E000..U+FFFF; moving the surrogates to the end of the unit space makes them agree. Nearly
 * every key is its own ordered form, so nothing is allocated.
 */
export function orderedForm(text: string): string {
  return outsideOrder.test(text) ? text.replace(/[\ud800-\uffff]/g, moveUnit) : text;
}

function moveUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  return String.fromCharCode(code >= 0xe000 ? code - 0x800 : code + 0x2000);
}

/** Order of keys: by their UTF-8 bytes. */
export function compareKeys(a: Key, b: Key): number {
  if (a === b) return 0;
  return orderedForm(a) < orderedForm(b) ? -1 : 1;
}

/** @throws StorageError `InvalidKey` for anything that is not a {@link Key}. */
export function checkKey(key: Key, limit = maxKeyBytes): void {
  if (key.length > 0 && key.length * 3 <= limit && !key.includes('\0') && !surrogate.test(key)) return;
  if (key.length === 0) throw invalid('a key must not be empty', key);
  if (key.includes('\0')) throw invalid('a key must not contain U+0000', key);
  if (loneSurrogate.test(key)) throw invalid('a key must be well-formed text, found half of a surrogate pair', key);
  if (Buffer.byteLength(key) > limit)
    throw invalid(`a key has at most ${limit} bytes, got ${Buffer.byteLength(key)}`, key);
}

function invalid(message: string, key: Key): StorageError {
  return new StorageError(StorageErrorCode.InvalidKey, message, { key: key.slice(0, 100) });
}

/** A {@link KeyRange} prepared for many comparisons; `start` and `end` are ordered forms. */
export class OrderedRange {
  readonly start: string;
  readonly startExclusive: boolean;
  readonly end: string;

  /** @throws StorageError `InvalidKey` when a bound is not well-formed text or is longer than any key. */
  constructor(range: KeyRange) {
    checkBound(range.start);
    checkBound(range.end);
    this.start = orderedForm(range.start);
    this.startExclusive = range.startExclusive === true;
    this.end = orderedForm(range.end);
  }

  /** Whether the range contains the key with this ordered form. */
  covers(ordered: string): boolean {
    return (this.startExclusive ? ordered > this.start : ordered >= this.start) && ordered < this.end;
  }
}

function checkBound(bound: string): void {
  if (loneSurrogate.test(bound)) throw invalid('a range bound must be well-formed text', bound);
  if (bound.length * 3 > maxKeyBytes && Buffer.byteLength(bound) > maxKeyBytes) {
    throw invalid(`a range bound has at most ${maxKeyBytes} bytes`, bound);
  }
}

/** @throws StorageError `Compacted` when `revision` is below the bound. */
export function checkNotCompacted(revision: Revision, compacted: Revision): void {
  if (revision >= compacted) return;
  throw new StorageError(
    StorageErrorCode.Compacted,
    `revision ${revision} is compacted, history begins at ${compacted}`,
    {
      revision: compacted,
    },
  );
}

/** @throws StorageError `Timeout` when the call was aborted before it had any effect. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal.reason });
}
