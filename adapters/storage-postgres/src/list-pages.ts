import { type Entry, type ListChunk, type Revision, throwIfAborted } from '@keelson/core/storage-adapter';
import { after, type Bounds } from './bounds.ts';
import type { Row } from './database.ts';
import { entryOf, type Position, positionOf } from './rows.ts';
import type { StoreReader } from './store-reader.ts';

const chunkEntries = 1000;
const pageBytes = 4 * 1024 * 1024;

export interface PageOptions {
  readonly revision?: Revision | undefined;
  readonly limit?: number | undefined;
  readonly keysOnly?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface Page {
  readonly entries: readonly Entry[];
  readonly revision: Revision;
  /** Start of the next page; undefined at the end of the range. */
  readonly next: string | undefined;
}

/** Recognises the row with the state of the store in the answers of `list_now` and `list_then`. */
function listPosition(row: Row): Position | undefined {
  const [key, head, compacted, , stamp] = row;
  return key === null ? positionOf(stamp, head, compacted) : undefined;
}

/** Reads the next keys of the range, bounded by number and by bytes. */
export async function readPage(reader: StoreReader, bounds: Bounds, size: number, options: PageOptions): Promise<Page> {
  const { revision, signal } = options;
  const values = options.keysOnly !== true;
  const common = [bounds.start, bounds.end];
  const bounded = [size, pageBytes, values];
  const { rows, store, position } =
    revision === undefined
      ? await reader.ask((s) => s.listNow, [...common, ...bounded], listPosition, { signal })
      : await reader.ask((s) => s.listThen, [...common, revision, ...bounded], listPosition, { signal });
  if (revision !== undefined) reader.assertReadable(revision, position);
  const examined = Number(store[3]);
  const last = rows.at(-1)?.[0];
  const more = rows.length < examined || examined === size;
  const entries: Entry[] = [];
  for (const [key, createRevision, modRevision, expiresAt, text, bytes] of rows) {
    if (key === null || key === undefined || modRevision === '0') continue;
    entries.push(entryOf({ key, createRevision, modRevision, expiresAt, text, bytes }));
  }
  const next = more && typeof last === 'string' ? after(last) : undefined;
  return { entries, revision: revision ?? position.head, next };
}

/**
 * Yields all pages of a list. Later pages show the state of the first page.
 * @param check throws when the store is closed
 */
export async function* listPages(
  reader: StoreReader,
  bounds: Bounds,
  options: PageOptions,
  check: () => void,
): AsyncGenerator<ListChunk, void, undefined> {
  let { revision } = options;
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  let next: string | undefined = bounds.start;
  let entries: Entry[] = [];
  let bytes = 0;
  for (;;) {
    const size = Math.min(chunkEntries, left);
    // One additional entry is read to determine whether more entries follow.
    while (next !== undefined && entries.length <= size && (bytes < pageBytes || entries.length < 2)) {
      check();
      throwIfAborted(options.signal);
      const rest: Bounds = { start: next, end: bounds.end };
      const page: Page = await readPage(reader, rest, size + 1 - entries.length, { ...options, revision });
      ({ revision, next } = page);
      for (const entry of page.entries) bytes += entry.value.byteLength;
      entries = entries.length === 0 ? [...page.entries] : [...entries, ...page.entries];
    }
    check();
    throwIfAborted(options.signal);
    const whole = next === undefined && entries.length <= size;
    const chunk = whole ? entries : entries.splice(0, Math.min(size, entries.length - 1));
    yield { entries: chunk, revision: revision ?? 0, more: !whole };
    left -= chunk.length;
    if (whole || left <= 0) return;
    bytes = entries.reduce((sum, entry) => sum + entry.value.byteLength, 0);
  }
}
