import assert from 'node:assert/strict';
import {
  type Entry,
  isStorageError,
  type Key,
  type KeyRange,
  type ListChunk,
  type Revision,
  type StorageErrorCode,
  type Store,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core';
import { byteOrder, inRange, type PlainChange, type PlainEntry, plainChange, plainEntry, StoreModel } from './model.ts';

/** Every key that the suite writes begins with a slash. */
export const everything: KeyRange = { start: '/', end: '0' };

export type Bytes = string | Uint8Array;

export function bytes(value: Bytes): Uint8Array {
  return typeof value === 'string' ? Buffer.from(value) : value;
}

export function textOf(entry: Entry | undefined): string | undefined {
  return entry === undefined ? undefined : Buffer.from(entry.value).toString();
}

/** Puts and expects success. */
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

/** Deletes and expects success. */
export async function remove(store: Store, key: Key, expect: Revision): Promise<Revision> {
  return succeeded(await store.write({ op: 'delete', key, expect }));
}

export function succeeded(result: WriteResult): Revision {
  assert.ok(result.ok, `the write was refused, current: ${JSON.stringify(result.ok ? undefined : result.current)}`);
  assert.ok(Number.isSafeInteger(result.revision) && result.revision > 0, 'a revision is a positive safe integer');
  return result.revision;
}

/** Expects a refusal and returns what it says. */
export function refused(result: WriteResult): { readonly current: PlainEntry | undefined; readonly revision: Revision } {
  assert.ok(!result.ok, 'the write succeeded');
  assert.ok((result.current?.modRevision ?? 0) <= result.revision, 'a refusal shows nothing newer than its revision');
  return { current: result.current && plainEntry(result.current), revision: result.revision };
}

/** Expects a StorageError of this code and nothing else. */
export function failsWith(
  code: StorageErrorCode,
  action: () => Promise<unknown>,
): Promise<{ readonly revision: number | undefined }> {
  return handled(expectFailure(code, action));
}

async function expectFailure(code: StorageErrorCode, action: () => Promise<unknown>): Promise<{ revision: number | undefined }> {
  try {
    await action();
  } catch (error) {
    assert.ok(isStorageError(error), `expected a StorageError ${code}, got ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return { revision: error.revision };
  }
  return assert.fail(`expected a failure with ${code}`);
}

function handled<T>(promise: Promise<T>): Promise<T> {
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

/** Reads a whole list and checks on the way what holds for every list. */
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

/** Pulls a watch stream and checks on the way what holds for every batch. */
export class Watcher {
  readonly stream: WatchStream;
  readonly changes: PlainChange[] = [];
  readonly frontiers: Revision[] = [];
  readonly #iterator: AsyncIterator<{ readonly changes: readonly unknown[]; readonly frontier: Revision }>;
  readonly #range: KeyRange;
  readonly #prevValue: boolean;
  #last: Revision;

  private constructor(stream: WatchStream, range: KeyRange, after: Revision, prevValue: boolean) {
    this.stream = stream;
    this.#iterator = stream[Symbol.asyncIterator]();
    this.#range = range;
    this.#prevValue = prevValue;
    this.#last = after;
  }

  static async open(
    store: Store,
    after: Revision,
    options: { readonly range?: KeyRange; readonly prevValue?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<Watcher> {
    const { range = everything, ...rest } = options;
    const stream = await store.watch(range, { after, ...rest });
    return new Watcher(stream, range, after, options.prevValue === true);
  }

  /** Pulls once; false at the end of the stream. A case that fails before it looks at the outcome leaves nothing unhandled. */
  pull(): Promise<boolean> {
    return handled(this.#pull());
  }

  async #pull(): Promise<boolean> {
    const before = this.stream.frontier;
    const { done, value } = (await this.#iterator.next()) as IteratorResult<{
      readonly changes: readonly Parameters<typeof plainChange>[0][];
      readonly frontier: Revision;
    }>;
    if (done === true) return false;
    assert.ok(value.frontier >= before, 'the frontier never decreases');
    assert.ok(this.stream.frontier >= value.frontier, 'the frontier of the stream follows its batches');
    for (const change of value.changes) {
      assert.ok(change.revision > this.#last || this.#sameRevision(change.revision, value.changes), 'changes ascend, once each');
      assert.ok(change.revision <= value.frontier, 'no change is beyond the frontier of its batch');
      assert.ok(inRange(this.#range, change.key), `${change.key} is outside the range`);
      assert.equal(change.entry === undefined, change.type === 'delete', 'a delete alone has no entry');
      assert.equal(
        'prev' in change && change.prev !== undefined,
        this.#prevValue && change.type !== 'create',
        `prev of a ${change.type}`,
      );
      if (change.entry !== undefined) {
        assert.equal(change.entry.modRevision, change.revision);
        assert.equal(change.entry.key, change.key);
        assert.equal(change.entry.createRevision === change.revision, change.type === 'create');
      }
      this.#last = change.revision;
      this.changes.push(plainChange(change));
    }
    // What was delivered up to here can never be extended: later changes must lie above this frontier.
    this.#last = Math.max(this.#last, value.frontier);
    this.frontiers.push(value.frontier);
    return true;
  }

  /** Pulls until the frontier has reached `revision`. */
  async until(revision: Revision): Promise<this> {
    const reached = this.stream.advanceTo(revision);
    reached.catch(() => {});
    while (this.stream.frontier < revision) assert.ok(await this.pull(), 'the stream ended');
    await reached;
    return this;
  }

  async close(): Promise<void> {
    await this.stream.close();
  }

  #sameRevision(revision: Revision, batch: readonly { readonly revision: Revision }[]): boolean {
    return revision === this.#last && batch.filter((change) => change.revision === revision).length > 1;
  }
}

/** Every change in (after, upTo], from a stream of its own. */
export async function changesBetween(
  store: Store,
  after: Revision,
  upTo: Revision,
  options: { readonly range?: KeyRange; readonly prevValue?: boolean } = {},
): Promise<PlainChange[]> {
  const watcher = await Watcher.open(store, after, { prevValue: true, ...options });
  await watcher.until(upTo);
  await watcher.close();
  return watcher.changes.filter((change) => change.revision <= upTo);
}

/** A store and its model, written to together; every answer is compared. */
export class Twin {
  readonly store: Store;
  readonly model: StoreModel;

  private constructor(store: Store, model: StoreModel) {
    this.store = store;
    this.model = model;
  }

  static async of(store: Store): Promise<Twin> {
    return new Twin(store, new StoreModel(await store.currentRevision()));
  }

  async write(op: WriteOp): Promise<WriteResult> {
    const before = this.model.current(op.key);
    const expected = this.model.accepts(op);
    const kept = op.op === 'put' ? { ...op, value: Buffer.from(op.value) } : op;
    const result = await this.store.write(op);
    assert.equal(result.ok, expected, `${op.op} of ${op.key} expecting ${op.expect}`);
    if (result.ok) {
      this.model.apply(kept, result.revision);
      const created = before?.createRevision ?? result.revision;
      assert.equal(result.createRevision, created);
    } else {
      assert.deepEqual(refused(result).current, before);
    }
    return result;
  }

  /** Puts whatever the key's state is. */
  async put(key: Key, value: Bytes): Promise<Revision> {
    const expect = this.model.current(key)?.modRevision ?? 0;
    return succeeded(await this.write({ op: 'put', key, value: bytes(value), expect }));
  }

  async remove(key: Key): Promise<Revision> {
    return succeeded(await this.write({ op: 'delete', key, expect: this.model.current(key)?.modRevision ?? 0 }));
  }

  /** The same model beside the store that took the place of the old one. */
  on(store: Store): Twin {
    return new Twin(store, this.model);
  }
}

/** An exact count must be this one. */
export async function countIs(store: Store, range: KeyRange, expected: number, revision?: Revision): Promise<void> {
  const answer = await store.count(range, revision === undefined ? {} : { revision });
  if (revision !== undefined) assert.equal(answer.revision, revision);
  if (answer.exact) assert.equal(answer.count, expected);
}
