import { isStorageError, StorageError, StorageErrorCode, type StorageErrorDetails } from '@keelson/core';
import { CallError, status } from './grpc-messages.ts';

/**
 * Thrown by the transport for a call that was never sent, so that even a write may be retried at another member. A call
 * that fails in another way without an answer may have reached etcd.
 */
export class NotSentError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'NotSentError';
  }
}

/** etcd refuses the user or the password. */
export class CredentialsError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'CredentialsError';
  }
}

/** Classification of a call that failed at etcd or at the connection to it. */
export type Verdict =
  /** Refused before anything was done; a retry may succeed. */
  | 'notDone'
  /** No answer: the call may or may not have taken effect. */
  | 'noAnswer'
  /** The deadline has passed without an answer. */
  | 'deadline'
  /** The caller has cancelled the call. */
  | 'cancelled'
  /** The token is invalid or has expired; nothing was done. */
  | 'token'
  | 'compacted'
  | 'futureRevision'
  | 'leaseNotFound'
  | 'tooLarge'
  /** The answer is larger than the client accepts. */
  | 'answerTooLarge'
  /** Refused permanently: no permission, unknown method, invalid request. */
  | 'refused';

/** Error texts of etcd (`rpctypes/error.go`); the gRPC code alone does not distinguish them. */
const texts: readonly (readonly [RegExp, Verdict])[] = [
  [/required revision has been compacted/, 'compacted'],
  [/required revision is a future revision/, 'futureRevision'],
  [/requested lease not found/, 'leaseNotFound'],
  [/request is too large/, 'tooLarge'],
  [/invalid auth token|revision of auth store is old|token is not provided/, 'token'],
  [/too many requests|database space exceeded|no space|not capable|etcdserver: no leader/, 'notDone'],
  [/Received message larger than max/, 'answerTooLarge'],
];

/** Error text of a call that the server refused before executing it. */
const notSentTexts = /^Stream refused by server/;

export function verdictOf(error: unknown): Verdict {
  if (error instanceof NotSentError) return 'notDone';
  if (error instanceof CredentialsError) return 'refused';
  if (!(error instanceof CallError)) return 'noAnswer';
  for (const [pattern, verdict] of texts) if (pattern.test(error.details)) return verdict;
  switch (error.code) {
    case status.cancelled:
      return 'cancelled';
    case status.deadlineExceeded:
      return 'deadline';
    case status.unauthenticated:
      return 'token';
    case status.unavailable:
      return notSentTexts.test(error.details) ? 'notDone' : 'noAnswer';
    case status.internal:
      return notSentTexts.test(error.details) ? 'notDone' : 'noAnswer';
    case status.unknown:
    case status.aborted:
    case status.dataLoss:
      return 'noAnswer';
    default:
      return 'refused';
  }
}

/** Returns whether a read may be retried, at the same member or at another one. */
export function mayRetryRead(verdict: Verdict): boolean {
  return verdict === 'notDone' || verdict === 'noAnswer' || verdict === 'deadline';
}

function textOf(error: unknown): string {
  if (error instanceof CallError) return error.details;
  return error instanceof Error ? error.message : String(error);
}

/** Converts a failure of etcd or of the connection to a {@link StorageError}. */
export function translateEtcdError(
  error: unknown,
  call: 'read' | 'write',
  details: StorageErrorDetails = {},
): StorageError {
  if (isStorageError(error)) return error;
  const make = (code: StorageErrorCode, message: string) =>
    new StorageError(code, message, { ...details, cause: error });
  const verdict = verdictOf(error);
  switch (verdict) {
    case 'notDone':
    case 'token':
      return make(StorageErrorCode.Unavailable, `etcd did not accept the request: ${textOf(error)}`);
    case 'noAnswer':
      return call === 'write'
        ? make(StorageErrorCode.OutcomeUnknown, `etcd did not answer the write: ${textOf(error)}`)
        : make(StorageErrorCode.Unavailable, `etcd did not answer: ${textOf(error)}`);
    case 'deadline':
      return call === 'write'
        ? make(StorageErrorCode.OutcomeUnknown, 'etcd did not answer the write in time')
        : make(StorageErrorCode.Timeout, 'etcd did not answer in time');
    case 'cancelled':
      return call === 'write'
        ? make(StorageErrorCode.OutcomeUnknown, 'the call was aborted while the write was running')
        : make(StorageErrorCode.Timeout, 'the call was aborted');
    case 'compacted':
      return make(StorageErrorCode.Compacted, 'the revision is compacted');
    case 'futureRevision':
      return make(StorageErrorCode.FutureRevision, 'the revision has not been reached');
    case 'leaseNotFound':
      return make(StorageErrorCode.Unavailable, 'the lease ended before it was used');
    case 'tooLarge':
      return make(StorageErrorCode.TooLarge, 'etcd refuses a request of this size');
    case 'answerTooLarge':
    case 'refused':
      return make(StorageErrorCode.Unavailable, `etcd refuses the request: ${textOf(error)}`);
    default:
      return unreachable(verdict);
  }
}

function unreachable(verdict: never): never {
  throw new Error(`unknown class of errors ${String(verdict)}`);
}

/** Returns whether a call failed because the answer exceeds the largest message that is accepted. */
export function isAnswerTooLarge(error: unknown): boolean {
  return isStorageError(error) && verdictOf(error.cause) === 'answerTooLarge';
}
