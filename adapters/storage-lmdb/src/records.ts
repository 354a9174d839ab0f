import { crc32 } from 'node:zlib';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Entry, Key, Revision } from '@keelson/core/storage-adapter';

/*
 * Layout on disk, all integers big endian:
 *
 * obj   key                                -> row
 * hist  key 0x00 revision                  -> row that the change at `revision` (an update or delete) replaced
 * log   first revision of a commit         -> the commit's changes, densely: count, then op, key, per change
 * ttl   expiry time, modRevision           -> key
 * meta  'identity', 'compacted'            -> JSON, revision
 *
 * row = createRevision with the highest bit set, modRevision, expiry time (0 = none), CRC-32 of the key and of all
 * other bytes, value. Keys contain no 0x00, so `hist` sorts by key, then revision. The count of a commit has its
 * highest bit set, and its CRC-32 follows.
 *
 * Format 1 had neither checksums nor those bits. Such records are valid up to revision `checkedAfter` of the store.
 */

const headerBytes = 28;
const formerHeaderBytes = 24;
const checksumAt = 24;
const checkedBit = 0x80;
const commitHeaderBytes = 8;
const nothing = Buffer.alloc(0);

/** An entry and its row; the value is a view into the row, or empty when the row is damaged. */
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
  bytes[0] = checkedBit;
  writeUint64(bytes, modRevision, 8);
  writeUint64(bytes, expiresAt ?? 0, 16);
  bytes.set(value, headerBytes);
  bytes.writeUInt32BE(rowChecksum(key, bytes), checksumAt);
  const entry = { key, value: bytes.subarray(headerBytes), createRevision, modRevision };
  return { entry: expiresAt === undefined ? entry : { ...entry, expiresAt }, bytes };
}

/**
 * The bytes of the row become part of the entry. A row with a wrong checksum becomes an entry that is `damaged`, so
 * that its key is listed and can be deleted.
 * @param checkedAfter rows of later revisions must have a checksum
 */
export function decodeRow(key: Key, bytes: Buffer, checkedAfter: Revision): Row {
  const checked = isChecked(bytes);
  const valueAt = checked ? headerBytes : formerHeaderBytes;
  const modRevision = bytes.byteLength < formerHeaderBytes ? 0 : readUint64(bytes, 8);
  const sound = checked
    ? bytes.byteLength >= headerBytes && bytes.readUInt32BE(checksumAt) === rowChecksum(key, bytes)
    : modRevision > 0 && modRevision <= checkedAfter;
  // The revisions of a damaged row are unreliable.
  if (!sound) return { entry: { key, value: nothing, createRevision: 1, modRevision: 1, damaged: true }, bytes };
  // The highest bit is removed before the conversion, because a JavaScript number of that size would lose its last
  // digits.
  const createRevision = (bytes.readUInt32BE(0) & 0x7fffffff) * 2 ** 32 + bytes.readUInt32BE(4);
  const expiresAt = readUint64(bytes, 16);
  const entry = { key, value: bytes.subarray(valueAt), createRevision, modRevision };
  return { entry: expiresAt === 0 ? entry : { ...entry, expiresAt }, bytes };
}

function isChecked(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & checkedBit) !== 0;
}

/** Covers all bytes except the checksum itself. */
function rowChecksum(key: Key, bytes: Buffer): number {
  return crc32(bytes.subarray(headerBytes), crc32(bytes.subarray(0, checksumAt), crc32(key)));
}

export function historyKey(key: Buffer, revision: Revision): Buffer {
  const bytes = Buffer.allocUnsafe(key.byteLength + 9);
  bytes.set(key);
  bytes[key.byteLength] = 0;
  writeUint64(bytes, revision, key.byteLength + 1);
  return bytes;
}

/** Returns the store key within a `hist` key. */
export function keyOfHistory(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.byteLength - 9);
}

/** A `hist` key above all history of `key` and below the next key. */
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

/** A change in the log; its values are in `obj` and `hist`. */
export interface LoggedChange {
  readonly type: 'create' | 'update' | 'delete';
  readonly key: Buffer;
}

const types = ['create', 'update', 'delete'] as const;

export function encodeCommit(changes: readonly LoggedChange[]): Buffer {
  let size = commitHeaderBytes;
  for (const { key } of changes) size += 3 + key.byteLength;
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt32BE(changes.length, 0);
  let offset = commitHeaderBytes;
  for (const { type, key } of changes) {
    bytes[offset] = types.indexOf(type);
    bytes.writeUInt16BE(key.byteLength, offset + 1);
    bytes.set(key, offset + 3);
    offset += 3 + key.byteLength;
  }
  bytes[0] = checkedBit | (bytes[0] ?? 0);
  bytes.writeUInt32BE(commitChecksum(bytes), 4);
  return bytes;
}

function commitChecksum(bytes: Buffer): number {
  return crc32(bytes.subarray(commitHeaderBytes), crc32(bytes.subarray(0, 4)));
}

/** Returns the number of changes in a commit. @throws StorageError `Corrupt` when the checksum is wrong. */
export function commitLength(bytes: Buffer): number {
  if (!isChecked(bytes)) return bytes.readUInt32BE(0);
  if (bytes.byteLength < commitHeaderBytes || bytes.readUInt32BE(4) !== commitChecksum(bytes)) {
    throw corrupt('a commit in the log fails its checksum');
  }
  return bytes.readUInt32BE(0) - 2 ** 31;
}

export function decodeCommit(bytes: Buffer): LoggedChange[] {
  const changes: LoggedChange[] = [];
  let offset = isChecked(bytes) ? commitHeaderBytes : 4;
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
