import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Entry, Key, Revision } from '@keelson/core/storage-adapter';

const nothing = Buffer.alloc(0);

/**
 * Returns the bytes of a value from the two columns of its row, one for text and one for other bytes. If both are null,
 * the value is empty.
 */
export function bytesOf(text: string | null | undefined, bytes: string | null | undefined): Buffer {
  if (text !== null && text !== undefined) return Buffer.from(text);
  if (bytes === null || bytes === undefined) return nothing;
  if (!bytes.startsWith('\\x')) throw corrupt('bytea_output must be hex, as it is by default');
  return Buffer.from(bytes.slice(2), 'hex');
}

/** @throws StorageError `Corrupt` for anything but a revision that is a safe integer */
export function revisionOf(text: string | null | undefined): Revision {
  const revision = Number(text);
  if (text === null || text === undefined || !Number.isSafeInteger(revision))
    throw corrupt(`${text} is not a revision`);
  return revision;
}

export interface EntryFields {
  readonly key: Key;
  readonly createRevision: string | null | undefined;
  readonly modRevision: string | null | undefined;
  readonly expiresAt: string | null | undefined;
  readonly text: string | null | undefined;
  readonly bytes: string | null | undefined;
}

export function entryOf(fields: EntryFields): Entry {
  const entry = {
    key: fields.key,
    value: bytesOf(fields.text, fields.bytes),
    createRevision: revisionOf(fields.createRevision),
    modRevision: revisionOf(fields.modRevision),
  };
  const { expiresAt } = fields;
  return expiresAt === null || expiresAt === undefined ? entry : { ...entry, expiresAt: Number(expiresAt) };
}

export function corrupt(message: string): StorageError {
  return new StorageError(StorageErrorCode.Corrupt, message);
}

/** State of the store in the snapshot of a read. */
export interface Position {
  /** Identifies store, epoch and timeline. */
  readonly stamp: string;
  readonly head: Revision;
  readonly compacted: Revision;
}

export function positionOf(
  stamp: string | null | undefined,
  head: string | null | undefined,
  compacted: string | null | undefined,
): Position {
  return { stamp: stamp ?? '', head: revisionOf(head), compacted: revisionOf(compacted) };
}
