import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError, StorageErrorCode } from '@keelson/core';
import { type Logger, tightenMode } from '@keelson/core/runtime';
import type { Key, Revision, StoreIdentity } from '@keelson/core/storage-adapter';
import { type Database, open, type RootDatabase } from 'lmdb';
import { reserveFile } from './disk-reserve.ts';
import { commitLength, corrupt, decodeRow, type Row, readRevision, revisionKey } from './records.ts';

/** A table of byte strings, ordered by the bytes of the keys. */
export type Table = Database<Buffer, Buffer>;

const format = 2;
/** The format of earlier versions, without checksums. */
const formerFormat = 1;
const identityKey = Buffer.from('identity');
const compactedKey = Buffer.from('compacted');
const floorKey = Buffer.from('floor');
/**
 * Number of revisions that are skipped after a restore. A store may have assigned revisions after its backup that this
 * process does not know; this number is greater than any realistic number of them.
 */
const skippedRevisions = 1_000_000;
const emptyRevision = 1;
/**
 * Key of the fence record. It is in the root table, whose pages every commit writes anyway. The version of the record
 * is the number of commits.
 */
const fenceKey = Buffer.from('!keelson/fence');
const noBytes = Buffer.alloc(0);
const binary = { encoding: 'binary', keyEncoding: 'binary' } as const;

/**
 * The open database: its tables and its single records. Every commit is on disk before it is reported, and is fenced:
 * within its transaction the number of commits on disk is compared with the number that this process expects. So this
 * process never writes on top of the writes of another process, even where the lock of the directory failed.
 */
export class Environment {
  readonly obj: Table;
  readonly hist: Table;
  readonly log: Table;
  readonly ttl: Table;
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #meta: Table;
  readonly #path: string;
  readonly #readOnly: boolean;
  #identity: StoreIdentity;
  /** Rows of later revisions have checksums. */
  #checkedAfter: Revision = 0;
  /** Number of commits that are on disk for certain. */
  #committed: number;
  /** Number of commits when all running ones have succeeded. */
  #expected: number;
  #running = 0;
  #fenced: StorageError | undefined;
  /** Called once when a commit detects that another process has written. */
  onFenced: (error: StorageError) => void = () => {};

  /** @param readOnly writes nothing, not even the records that an empty directory lacks */
  constructor(path: string, logger: Logger, readOnly = false) {
    this.#path = path;
    this.#readOnly = readOnly;
    if (!readOnly) for (const name of ['data.mdb', 'lock.mdb', reserveFile]) tightenMode(join(path, name), logger);
    // overlappingSync would report commits that a power failure reverts; eventTurnBatching creates promises whose
    // rejection no caller could handle.
    const options = {
      path,
      noSubdir: false,
      maxDbs: 8,
      overlappingSync: false,
      eventTurnBatching: false,
      useVersions: true,
      ...binary,
    };
    // The type of the driver's options lacks the mode of its files.
    this.#root = open({ ...options, permissionsMode: 0o600 } as typeof options);
    const table = (name: string): Table => this.#root.openDB<Buffer, Buffer>({ name, useVersions: false, ...binary });
    try {
      this.#meta = table('meta');
      this.obj = table('obj');
      this.hist = table('hist');
      this.log = table('log');
      this.ttl = table('ttl');
      const found = this.#readIdentity();
      if (found === undefined && readOnly) throw corrupt(`${join(path, 'data.mdb')} contains no store`);
      this.#identity = found ?? this.#createIdentity();
      this.#committed = this.#fence();
      this.#expected = this.#committed;
      if (!readOnly) syncDirectory(path);
    } catch (error) {
      void this.#root.close();
      throw error;
    }
  }

  get identity(): StoreIdentity {
    return this.#identity;
  }

  /**
   * Runs `change` as one transaction, which is on disk when the promise resolves.
   *
   * @throws StorageError `Unavailable` when another process has written; then nothing was written, and every later
   *   commit of this object fails
   */
  async commit(change: () => void): Promise<void> {
    if (this.#fenced !== undefined) throw this.#fenced;
    const before = this.#expected++;
    this.#running++;
    try {
      await this.#commitAfter(before, change);
      this.#committed = before + 1;
    } finally {
      this.#running--;
      // Commits on top of a failed one have failed as well.
      if (this.#running === 0) this.#expected = this.#committed;
    }
  }

  async #commitAfter(before: number, change: () => void): Promise<void> {
    let fits: boolean;
    try {
      fits = await this.#root.ifVersion(fenceKey, before, () => {
        change();
        void this.#root.put(fenceKey, noBytes, before + 1);
      });
      this.#root.resetReadTxn();
    } catch (error) {
      this.#root.resetReadTxn();
      // The driver reports the reason in a separate promise without any other handler; it settles by the next turn of
      // the event loop.
      const reason = (error as { commitError?: Promise<never> }).commitError;
      reason?.catch(() => {});
      await Promise.race([reason, new Promise((resolve) => setImmediate(resolve))]);
      throw error;
    }
    if (fits) return;
    if (this.#onDisk() === this.#committed) throw new Error('the commit before this one failed');
    this.#fenced ??= this.#fencedBy();
    throw this.#fenced;
  }

  #fencedBy(): StorageError {
    const error = new StorageError(
      StorageErrorCode.Unavailable,
      `another process has written to the store in ${this.#path}, so that this process has stopped using it; ` +
        'run one server per directory',
    );
    this.onFenced(error);
    return error;
  }

  /** Returns the number of commits on disk; undefined in a store of an earlier version. */
  #onDisk(): number | undefined {
    return this.#root.getEntry(fenceKey)?.version;
  }

  #fence(): number {
    const commits = this.#onDisk();
    if (commits !== undefined) return commits;
    if (this.#readOnly) return 0;
    this.#root.transactionSync(() => {
      if (this.#onDisk() === undefined) void this.#root.put(fenceKey, noBytes, 1);
    });
    return 1;
  }

  decode(key: Key, row: Buffer): Row {
    return decodeRow(key, row, this.#checkedAfter);
  }

  /** The newest revision on disk. */
  head(): Revision {
    const bytes = this.#meta.getBinary(floorKey);
    const floor = bytes === undefined ? emptyRevision : readRevision(bytes);
    for (const { key, value } of this.log.getRange({ reverse: true, limit: 1 })) {
      return Math.max(readRevision(key) + commitLength(value) - 1, floor);
    }
    return floor;
  }

  /**
   * Continues far above `seen` in another epoch, with all history compacted. The caller has stopped all other use of
   * the environment.
   */
  async leapOver(seen: Revision): Promise<void> {
    const floor = Math.max(seen, this.head()) + skippedRevisions;
    const identity = { ...this.#identity, epoch: this.#identity.epoch + 1 };
    await this.commit(() => {
      void this.#meta.put(floorKey, revisionKey(floor));
      this.#putIdentity(identity);
      this.putCompacted(floor);
    });
    this.#identity = identity;
  }

  compacted(): Revision {
    const bytes = this.#meta.getBinary(compactedKey);
    return bytes === undefined ? 0 : readRevision(bytes);
  }

  /** Must be called within `commit`. */
  putCompacted(revision: Revision): void {
    void this.#meta.put(compactedKey, revisionKey(revision));
  }

  /** Number of keys in the current state. */
  size(): number {
    return (this.obj.getStats() as { entryCount: number }).entryCount;
  }

  /** Returns the size, in bytes, of the unused pages of the data file. */
  freeBytes(): number {
    interface Pages {
      readonly treeBranchPageCount: number;
      readonly treeLeafPageCount: number;
      readonly overflowPages: number;
    }
    const pages = (tree: Pages) => tree.treeBranchPageCount + tree.treeLeafPageCount + tree.overflowPages;
    const stats = this.#root.getStats() as Pages & {
      readonly pageSize: number;
      readonly lastPageNumber: number;
      readonly free: Pages;
    };
    let used = 2 + pages(stats) + pages(stats.free);
    for (const table of [this.#meta, this.obj, this.hist, this.log, this.ttl]) used += pages(table.getStats() as Pages);
    return Math.max(0, stats.lastPageNumber + 1 - used) * stats.pageSize;
  }

  async close(): Promise<void> {
    await this.#root.close();
  }

  #readIdentity(): StoreIdentity | undefined {
    const bytes = this.#meta.getBinary(identityKey);
    if (bytes === undefined) return undefined;
    const found = identityIn(bytes);
    if (found.format !== format && found.format !== formerFormat) {
      throw corrupt(`the store has format ${found.format}, this version reads format ${format}`);
    }
    const identity = { storeId: found.storeId, epoch: found.epoch };
    this.#checkedAfter = found.checkedAfter ?? 0;
    if (found.format === format) return identity;
    this.#checkedAfter = this.head();
    if (!this.#readOnly) this.#root.transactionSync(() => this.#putIdentity(identity));
    return identity;
  }

  #createIdentity(): StoreIdentity {
    const identity = { storeId: randomUUID(), epoch: 1 };
    this.#root.transactionSync(() => this.#putIdentity(identity));
    return identity;
  }

  #putIdentity(identity: StoreIdentity): void {
    const record = { format, ...identity, checkedAfter: this.#checkedAfter };
    void this.#meta.put(identityKey, Buffer.from(JSON.stringify(record)));
  }
}

function identityIn(bytes: Buffer) {
  try {
    return JSON.parse(bytes.toString()) as { format: number; storeId: string; epoch: number; checkedAfter?: number };
  } catch {
    throw corrupt('the identity of the store is damaged');
  }
}

/** Makes the directory entries of new files durable, on systems that support it. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
