import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import { join } from 'node:path';
import type { Revision, StoreIdentity } from '@keelson/core';
import { type Database, open, type RootDatabase } from 'lmdb';
import { commitLength, corrupt, readRevision, revisionKey } from './records.ts';

/** Bytes to bytes, in the order of the key's bytes. */
export type Table = Database<Buffer, Buffer>;

const format = 1;
const identityKey = Buffer.from('identity');
const compactedKey = Buffer.from('compacted');
const floorKey = Buffer.from('floor');
/** Revisions left out when history was rewound: room for those that were given out and not noticed. */
const leap = 1_000_000;
const emptyRevision = 1;
const binary = { encoding: 'binary', keyEncoding: 'binary' } as const;

/** The open database: its tables, and the few single values. Every commit is on disk before it is reported. */
export class Environment {
  readonly obj: Table;
  readonly hist: Table;
  readonly log: Table;
  readonly ttl: Table;
  readonly #root: RootDatabase<Buffer, Buffer>;
  readonly #meta: Table;
  #identity: StoreIdentity;

  constructor(path: string) {
    checkDataFile(join(path, 'data.mdb'));
    // overlappingSync would report commits that a power failure takes back; eventTurnBatching makes promises of its own, whose
    // rejection nobody could handle.
    this.#root = open({ path, noSubdir: false, maxDbs: 8, overlappingSync: false, eventTurnBatching: false, ...binary });
    const table = (name: string): Table => this.#root.openDB<Buffer, Buffer>({ name, ...binary });
    try {
      this.#meta = table('meta');
      this.obj = table('obj');
      this.hist = table('hist');
      this.log = table('log');
      this.ttl = table('ttl');
      this.#identity = this.#readIdentity() ?? this.#createIdentity();
      syncDirectory(path);
    } catch (error) {
      void this.#root.close();
      throw error;
    }
  }

  get identity(): StoreIdentity {
    return this.#identity;
  }

  /** Runs `change` as one transaction, which is on disk when the promise resolves. */
  async commit(change: () => void): Promise<void> {
    try {
      await this.#root.batch(change);
      this.#root.resetReadTxn();
    } catch (error) {
      this.#root.resetReadTxn();
      // The driver tells the reason in a promise of its own, which nobody else would handle; it is settled by now or soon.
      const reason = (error as { commitError?: Promise<never> }).commitError;
      reason?.catch(() => {});
      await Promise.race([reason, new Promise((resolve) => setImmediate(resolve))]);
      throw error;
    }
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

  /** Goes on far above `seen` in another epoch, with all history compacted. Nothing else may be using the environment. */
  async leapOver(seen: Revision): Promise<void> {
    const floor = Math.max(seen, this.head()) + leap;
    const identity = { ...this.#identity, epoch: this.#identity.epoch + 1 };
    await this.commit(() => {
      void this.#meta.put(floorKey, revisionKey(floor));
      void this.#meta.put(identityKey, Buffer.from(JSON.stringify({ format, ...identity })));
      this.putCompacted(floor);
    });
    this.#identity = identity;
  }

  compacted(): Revision {
    const bytes = this.#meta.getBinary(compactedKey);
    return bytes === undefined ? 0 : readRevision(bytes);
  }

  /** To be called within `commit`. */
  putCompacted(revision: Revision): void {
    void this.#meta.put(compactedKey, revisionKey(revision));
  }

  /** Number of keys in the current state. */
  size(): number {
    return (this.obj.getStats() as { entryCount: number }).entryCount;
  }

  async close(): Promise<void> {
    await this.#root.close();
  }

  #readIdentity(): StoreIdentity | undefined {
    const bytes = this.#meta.getBinary(identityKey);
    if (bytes === undefined) return undefined;
    const found = JSON.parse(bytes.toString()) as { format: number; storeId: string; epoch: number };
    if (found.format !== format) throw corrupt(`the store has format ${found.format}, this version reads format ${format}`);
    return { storeId: found.storeId, epoch: found.epoch };
  }

  #createIdentity(): StoreIdentity {
    const identity = { storeId: randomUUID(), epoch: 1 };
    this.#root.transactionSync(() => {
      void this.#meta.put(identityKey, Buffer.from(JSON.stringify({ format, ...identity })));
    });
    return identity;
  }
}

/**
 * The driver crashes the process on a file that it cannot read, so the head of the first page is looked at before: the magic
 * number and the version of the data format. An empty file is one that is yet to be made.
 */
function checkDataFile(file: string): void {
  const head = Buffer.alloc(32);
  let length: number;
  try {
    const descriptor = openSync(file, 'r');
    try {
      length = readSync(descriptor, head);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (length === 0) return;
  if (length < head.byteLength || read32(head, 24) !== 0xbeefc0de) throw corrupt(`${file} is not a database`);
  if (read32(head, 28) !== 2) throw corrupt(`${file} has data format ${read32(head, 28)}, the driver reads format 2`);
}

/** The file has the byte order of the machine. */
function read32(bytes: Buffer, offset: number): number {
  return endianness() === 'LE' ? bytes.readUInt32LE(offset) : bytes.readUInt32BE(offset);
}

/** Makes the names of new files durable, where the system can. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
