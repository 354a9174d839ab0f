import assert from 'node:assert/strict';
import { isStorageError, type StorageErrorCode } from '@keelson/core';
import type { Entry, Key, KeyRange, ListChunk, Revision, Store, WriteResult } from '@keelson/core/storage-adapter';
import { byteOrder, inRange, type PlainEntry, plainEntry } from './model.ts';

/** Every key that the suite writes begins with a slash. */
export const everything: KeyRange = { start: '/', end: '0' };

export type Bytes = string | Uint8Array;

export function bytes(value: Bytes): Uint8Array {
  return typeof value === 'string' ? Buffer.from(value) : value;
}

export function textOf(entry: Entry | undefined): string | undefined {
  return entry === undefined ? undefined : Buffer.from(entry.value).toString();
}

/** Puts and asserts success. */
export async function put(
  store: Store,
  key: Key,
  value: Bytes,
  expect: Revision = 0,
  options: { readonly ttlMs?: number } = {},
): Promise<Revision> {
  const result = await store.write({ op: 'put', key, value: bytes(value), expect, ...options });
  return succeeded(result);
}

/** Concurrent writes of {@link putAll}: the deadline of a write includes the time that it waits for others. */
const writesAtOnce = 250;

/** Puts new keys, which are their own values by default. Returns the revisions in the order of the keys. */
export async function putAll(
  store: Store,
  keys: readonly Key[],
  content: (index: number) => Bytes = (index) => keys[index] ?? '',
): Promise<Revision[]> {
  const revisions: Revision[] = [];
  for (let from = 0; from < keys.length; from += writesAtOnce) {
    const group = keys.slice(from, from + writesAtOnce);
    revisions.push(...(await Promise.all(group.map((key, i) => put(store, key, content(from + i))))));
  }
  return revisions;
}

/** Deletes and asserts success. */
export async function remove(store: Store, key: Key, expect: Revision): Promise<Revision> {
  return succeeded(await store.write({ op: 'delete', key, expect }));
}

export function succeeded(result: WriteResult): Revision {
  assert.ok(result.ok, `the write was refused, current: ${JSON.stringify(result.ok ? undefined : result.current)}`);
  assert.ok(Number.isSafeInteger(result.revision) && result.revision > 0, 'a revision is a positive safe integer');
  return result.revision;
}

/** Asserts that the write is refused and returns the result. */
export function refused(result: WriteResult): {
  readonly current: PlainEntry | undefined;
  readonly revision: Revision;
} {
  assert.ok(!result.ok, 'the write succeeded');
  assert.ok((result.current?.modRevision ?? 0) <= result.revision, 'a refusal shows nothing newer than its revision');
  return { current: result.current && plainEntry(result.current), revision: result.revision };
}

/** Asserts that the call fails with a StorageError of this code. */
export function failsWith(
  code: StorageErrorCode,
  action: () => Promise<unknown>,
): Promise<{ readonly revision: number | undefined }> {
  return handled(expectFailure(code, action));
}

async function expectFailure(
  code: StorageErrorCode,
  action: () => Promise<unknown>,
): Promise<{ revision: number | undefined }> {
  try {
    await action();
  } catch (error) {
    assert.ok(isStorageError(error), `expected a StorageError ${code}, got ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return { revision: error.revision };
  }
  return assert.fail(`expected a failure with ${code}`);
}

/** Returns the promise; a rejection without a handler is ignored. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

export interface ListAnswer {
  readonly entries: PlainEntry[];
  readonly keys: Key[];
  readonly revision: Revision;
  readonly more: boolean;
  readonly chunks: number;
}

type ListOptions = { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean };

/** Reads a whole list and checks the invariants of every list. */
export async function listAll(store: Store, range: KeyRange, options: ListOptions = {}): Promise<ListAnswer> {
  const chunks: ListChunk[] = [];
  for await (const chunk of store.list(range, options)) chunks.push(chunk);
  const first = chunks[0];
  const last = chunks.at(-1);
  assert.ok(first !== undefined && last !== undefined, 'a list has at least one chunk');
  for (const chunk of chunks) {
    assert.equal(chunk.revision, first.revision, 'every chunk has the same revision');
    if (chunk !== last) assert.equal(chunk.more, true, 'a chunk that is not the last says that more follows');
  }
  if (options.revision !== undefined) assert.equal(first.revision, options.revision, 'a pinned list has its revision');
  if (options.limit === undefined) assert.equal(last.more, false, 'nothing follows a list without limit');
  const entries = chunks.flatMap((chunk) => chunk.entries.map(plainEntry));
  const keys = entries.map((entry) => entry.key);
  for (const [i, key] of keys.entries()) {
    assert.ok(inRange(range, key), `${JSON.stringify(key)} is outside the range`);
    if (i > 0) assert.ok(byteOrder(keys[i - 1] as Key, key) < 0, `${JSON.stringify(key)} is out of order or twice`);
  }
  for (const entry of entries) assert.ok(entry.modRevision <= first.revision, 'nothing newer than the list');
  return { entries, keys, revision: first.revision, more: last.more, chunks: chunks.length };
}

/** Lists page by page at one revision, as a client with continue tokens does. */
export async function listPages(store: Store, range: KeyRange, limit: number, pinned?: Revision): Promise<ListAnswer> {
  const entries: PlainEntry[] = [];
  let page = await listAll(store, range, pinned === undefined ? { limit } : { limit, revision: pinned });
  let pages = 1;
  for (;;) {
    entries.push(...page.entries);
    const last = page.keys.at(-1);
    if (!page.more || last === undefined) break;
    assert.equal(page.entries.length, limit, 'a page that is not the last is full');
    const rest = { start: last, startExclusive: true, end: range.end };
    page = await listAll(store, rest, { limit, revision: page.revision });
    pages++;
  }
  return { entries, keys: entries.map((e) => e.key), revision: page.revision, more: false, chunks: pages };
}

/** Asserts that an exact count equals `expected`. */
export async function countIs(store: Store, range: KeyRange, expected: number, revision?: Revision): Promise<void> {
  const answer = await store.count(range, revision === undefined ? {} : { revision });
  if (revision !== undefined) assert.equal(answer.revision, revision);
  if (answer.exact) assert.equal(answer.count, expected);
}
