import { type Entry, type Key, type Revision, StorageError, StorageErrorCode } from '@keelson/core';

/*
 * Layout on disk, all integers big endian:
 *
 * obj   key                                -> row
 * hist  key 0x00 revision                  -> row that the change at `revision` (an update or delete) replaced
 * log   first revision of a commit         -> the commit's changes, densely: count, then op, key, per change
 * ttl   expiry time, modRevision           -> key
 * meta  'identity', 'compacted'            -> JSON, revision
 *
 * row = createRevision, modRevision, expiry time (0 = none), value. Keys hold no 0x00, so `hist` sorts by key, then revision.
 */

const headerBytes = 24;

/** An entry and its row; the value is a view into the row. */
export interface Row {
  readonly entry: Entry;
  readonly bytes: Buffer;
}

function writeUint64(target: Buffer, value: number, offset: number): void {
  target.writeUInt32BE(Math.floor(value / 2 ** 32), offset);
  target.writeUInt32BE(value >>> 0, offset + 4);
}

function readUint64(source: Buffer, offset: number): number {
  return source.readUInt32BE(offset) * 2 ** 32 + source.readUInt32BE(offset + 4);
}

export function encodeRow(
  key: Key,
  value: Uint8Array,
  createRevision: Revision,
  modRevision: Revision,
  expiresAt: number | undefined,
): Row {
  const bytes = Buffer.allocUnsafe(headerBytes + value.byteLength);
  writeUint64(bytes, createRevision, 0);
  writeUint64(bytes, modRevision, 8);
  writeUint64(bytes, expiresAt ?? 0, 16);
  bytes.set(value, headerBytes);
  const entry = { key, value: bytes.subarray(headerBytes), createRevision, modRevision };
  return { entry: expiresAt === undefined ? entry : { ...entry, expiresAt }, bytes };
}

/** The row's bytes become part of the entry. */
export function decodeRow(key: Key, bytes: Buffer): Row {
  if (bytes.byteLength < headerBytes) throw corrupt(`the row of ${JSON.stringify(key)} is cut short`);
  const createRevision = readUint64(bytes, 0);
  const modRevision = readUint64(bytes, 8);
  const expiresAt = readUint64(bytes, 16);
  const entry = { key, value: bytes.subarray(headerBytes), createRevision, modRevision };
  return { entry: expiresAt === 0 ? entry : { ...entry, expiresAt }, bytes };
}

export function rowRevision(bytes: Buffer): Revision {
  return readUint64(bytes, 8);
}

export function historyKey(key: Buffer, revision: Revision): Buffer {
  const bytes = Buffer.allocUnsafe(key.byteLength + 9);
  bytes.set(key);
  bytes[key.byteLength] = 0;
  writeUint64(bytes, revision, key.byteLength + 1);
  return bytes;
}

/** The key of a `hist` key. */
export function keyOfHistory(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.byteLength - 9);
}

/** Above every history of `key`, below the next key. */
export function historyEnd(key: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(key.byteLength + 1);
  bytes.set(key);
  bytes[key.byteLength] = 1;
  return bytes;
}

export function revisionKey(revision: Revision): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  writeUint64(bytes, revision, 0);
  return bytes;
}

export function readRevision(bytes: Buffer): Revision {
  return readUint64(bytes, 0);
}

export function expiryKey(expiresAt: number, revision: Revision): Buffer {
  const bytes = Buffer.allocUnsafe(16);
  writeUint64(bytes, expiresAt, 0);
  writeUint64(bytes, revision, 8);
  return bytes;
}

export function readExpiryKey(bytes: Buffer): { readonly expiresAt: number; readonly revision: Revision } {
  return { expiresAt: readUint64(bytes, 0), revision: readUint64(bytes, 8) };
}

/** What the log says of a change; its values are in `obj` and `hist`. */
export interface LoggedChange {
  readonly type: 'create' | 'update' | 'delete';
  readonly key: Buffer;
}

const types = ['create', 'update', 'delete'] as const;

export function encodeCommit(changes: readonly LoggedChange[]): Buffer {
  let size = 4;
  for (const { key } of changes) size += 3 + key.byteLength;
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt32BE(changes.length, 0);
  let offset = 4;
  for (const { type, key } of changes) {
    bytes[offset] = types.indexOf(type);
    bytes.writeUInt16BE(key.byteLength, offset + 1);
    bytes.set(key, offset + 3);
    offset += 3 + key.byteLength;
  }
  return bytes;
}

/** Number of changes in a commit. */
export function commitLength(bytes: Buffer): number {
  return bytes.readUInt32BE(0);
}

export function decodeCommit(bytes: Buffer): LoggedChange[] {
  const changes: LoggedChange[] = [];
  let offset = 4;
  for (let i = commitLength(bytes); i > 0; i--) {
    const type = types[bytes[offset] ?? types.length];
    const end = offset + 3 + bytes.readUInt16BE(offset + 1);
    if (type === undefined || end > bytes.byteLength) throw corrupt('a commit in the log cannot be read');
    changes.push({ type, key: bytes.subarray(offset + 3, end) });
    offset = end;
  }
  return changes;
}

export function corrupt(message: string): StorageError {
  return new StorageError(StorageErrorCode.Corrupt, message);
}
