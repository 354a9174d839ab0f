import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import { type Clock, pause } from '../runtime/clock.ts';
import type { ReadPoint, StorageListOptions } from './resource-storage.ts';
import type { Key, KeyRange, Revision, Store, StoreCapabilities, WriteOp } from './store.ts';

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

/** Checks the key and the size of a value. @throws StorageError `InvalidKey`, `TooLarge` */
export function checkWrite(op: WriteOp, { maxValueBytes }: Pick<StoreCapabilities, 'maxValueBytes'>): void {
  checkKey(op.key);
  if (op.op === 'delete' || op.value.byteLength <= maxValueBytes) return;
  const message = `a value has at most ${maxValueBytes} bytes, got ${op.value.byteLength}`;
  throw new StorageError(StorageErrorCode.TooLarge, message, { key: op.key });
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

/** How long a read waits for a revision that has not been reached: see docs/reference/api-rules.md#future-revisions. */
export const futureRevisionWaitMs = 3_000;

export function futureRevision(wanted: Revision, current: Revision): StorageError {
  return new StorageError(
    StorageErrorCode.FutureRevision,
    `revision ${wanted} has not been reached, the store is at ${current}`,
    {
      revision: current,
    },
  );
}

/**
 * Resolves when the store has reached `wanted`. Polls the store at growing intervals while a caller waits.
 *
 * @throws StorageError `FutureRevision` after three seconds.
 */
export async function awaitRevision(store: Store, clock: Clock, wanted: Revision, signal?: AbortSignal): Promise<void> {
  const deadline = clock.monotonic() + futureRevisionWaitMs;
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, 250)) {
    throwIfAborted(signal);
    const current = await store.currentRevision(signal === undefined ? {} : { signal });
    if (current >= wanted) return;
    const left = deadline - clock.monotonic();
    if (left <= 0) throw futureRevision(wanted, current);
    await pause(clock, Math.min(pauseMs, left), signal);
  }
}

/** Which state a list wants, its place in a chunked list taken into account. */
export function pinnedPoint(options: StorageListOptions): ReadPoint {
  const { resume } = options;
  if (resume === undefined) return options.at;
  return resume.revision === 'latest' ? { at: 'latest' } : { at: 'exact', revision: resume.revision };
}

/**
 * One read shared by concurrent callers. At most one read is in progress. Callers that arrive during a read share the
 * next one, because the result of the present one may be older than their call. Every result is therefore of a read
 * that began after the call of each of its receivers, which keeps shared reads linearizable.
 */
export class Coalesced<T> {
  readonly #read: () => Promise<T>;
  #running: Promise<unknown> | undefined;
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /**
   * The result of a read that begins after this call. A failure reaches the callers that shared the failed read only.
   *
   * @throws StorageError `Timeout` when the signal aborts first; the read itself continues for the other callers.
   */
  get(signal?: AbortSignal): Promise<T> {
    if (signal === undefined) return this.#join();
    return new Promise((resolve, reject) => {
      throwIfAborted(signal);
      const abort = () =>
        reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: signal.reason }));
      addAbortListener(signal, abort);
      this.#join()
        .then(resolve, reject)
        .finally(() => removeAbortListener(signal, abort));
    });
  }

  #join(): Promise<T> {
    this.#next ??= this.#start(this.#running);
    return this.#next;
  }

  async #start(previous: Promise<unknown> | undefined): Promise<T> {
    // Without a previous read, this still lets all callers of the same turn join.
    await previous;
    this.#next = undefined;
    const result = this.#read();
    const settled = result.then(ignore, ignore);
    this.#running = settled;
    try {
      return await result;
    } finally {
      if (this.#running === settled) this.#running = undefined;
    }
  }
}

function ignore(): void {}
