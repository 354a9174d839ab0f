/**
 * Reason why a storage operation failed. Programs depend on the code; the message is for logs and users.
 *
 * - `NotFound`: the key does not exist.
 * - `AlreadyExists`: the key of a create already exists.
 * - `Conflict`: the key's modRevision is not the expected one, or a precondition failed.
 * - `Compacted`: the requested revision is no longer in history; list again and watch from the revision of the list.
 * - `FutureRevision`: the requested revision was not reached within the timeout.
 * - `EpochChanged`: the store was restored or failed over; revisions and tokens obtained before are invalid.
 * - `OutcomeUnknown`: the write may or may not have been applied; read before a retry.
 * - `Unavailable`: the operation was not applied; the call may be repeated.
 * - `Timeout`: the call was aborted or did not finish in time, and was not applied.
 * - `TooLarge`: the key or the value exceeds the limit of the store.
 * - `InvalidKey`: empty, too long or containing NUL.
 * - `InvalidToken`: a continue token that this server did not issue, or (`mismatch`) issued for another list.
 * - `ExpiredToken`: a continue token whose lifetime has ended.
 * - `SlowConsumer`: a watch is so far behind that it must resume from history.
 * - `Corrupt`: stored bytes cannot be decoded.
 * - `Closed`: the store was closed.
 */
export const StorageErrorCode = {
  NotFound: 'NotFound',
  AlreadyExists: 'AlreadyExists',
  Conflict: 'Conflict',
  Compacted: 'Compacted',
  FutureRevision: 'FutureRevision',
  EpochChanged: 'EpochChanged',
  OutcomeUnknown: 'OutcomeUnknown',
  Unavailable: 'Unavailable',
  Timeout: 'Timeout',
  TooLarge: 'TooLarge',
  InvalidKey: 'InvalidKey',
  InvalidToken: 'InvalidToken',
  ExpiredToken: 'ExpiredToken',
  SlowConsumer: 'SlowConsumer',
  Corrupt: 'Corrupt',
  Closed: 'Closed',
} as const;
export type StorageErrorCode = (typeof StorageErrorCode)[keyof typeof StorageErrorCode];

/** The details of a {@link StorageError} besides its code; every field is optional. */
export interface StorageErrorDetails {
  readonly key?: string;
  /** The revision the failure is about: the compacted bound, the current revision, the conflicting modRevision. */
  readonly revision?: number;
  /** On `InvalidToken`: the token is genuine, but belongs to a list with other parameters. */
  readonly mismatch?: boolean;
  readonly cause?: unknown;
}

const brand = Symbol.for('keelson.StorageError');

/** An error of the storage layer. It contains keys and revisions, never kinds or HTTP; see {@link StorageErrorCode}. */
export class StorageError extends Error {
  readonly code: StorageErrorCode;
  readonly key: string | undefined;
  readonly revision: number | undefined;
  readonly mismatch: boolean;
  readonly [brand] = true;

  constructor(code: StorageErrorCode, message: string, details: StorageErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'StorageError';
    this.code = code;
    this.key = details.key;
    this.revision = details.revision;
    this.mismatch = details.mismatch ?? false;
  }
}

/** True for a {@link StorageError} (of the given code, if one is given), also across two copies of this package. */
export function isStorageError(error: unknown, code?: StorageErrorCode): error is StorageError {
  return (
    typeof error === 'object' &&
    error !== null &&
    brand in error &&
    (code === undefined || (error as StorageError).code === code)
  );
}
