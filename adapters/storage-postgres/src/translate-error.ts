import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import { SqlState, sqlStateOf } from './sql-state.ts';

const endOfConnection: ReadonlySet<string> = new Set([
  SqlState.adminShutdown,
  SqlState.crashShutdown,
  SqlState.cannotConnectNow,
  SqlState.idleSessionTimeout,
]);

/**
 * True when the connection is gone, or will not answer: what a statement that was under way has done is then not known.
 * Any error that is not an answer of the server counts.
 */
export function isConnectionLost(error: unknown): boolean {
  if (isStorageError(error)) return false;
  const state = sqlStateOf(error);
  return state === undefined || state.startsWith('08') || endOfConnection.has(state);
}

/** True when the transaction was rolled back for a reason that the next attempt may not meet. */
export function isTransient(error: unknown): boolean {
  const state = sqlStateOf(error);
  return (
    state === SqlState.serializationFailure ||
    state === SqlState.deadlockDetected ||
    state === SqlState.lockNotAvailable
  );
}

/** True when a value or key was refused, so that other writes of its batch may go through without it. */
export function isAboutData(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === SqlState.programLimitExceeded || state?.startsWith('22') === true;
}

/** True when a connection was refused because there are too many, so that one of those that exist has to do. */
export function isOutOfConnections(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === SqlState.tooManyConnections || state === SqlState.protocolViolation;
}

function codeOf(error: unknown): StorageErrorCode {
  switch (sqlStateOf(error)) {
    case SqlState.programLimitExceeded:
      return StorageErrorCode.TooLarge;
    case SqlState.dataCorrupted:
    case SqlState.indexCorrupted:
      return StorageErrorCode.Corrupt;
    default:
      return StorageErrorCode.Unavailable;
  }
}

function reasonOf(error: unknown): string {
  switch (sqlStateOf(error)) {
    case SqlState.undefinedTable:
    case SqlState.undefinedFunction:
      return 'the tables of the store are missing';
    case SqlState.readOnlyTransaction:
    case SqlState.wrongState:
      return 'the server takes no writes, it may be a standby';
    case SqlState.insufficientPrivilege:
      return 'the role lacks a privilege';
    case SqlState.tooManyConnections:
      return 'the server has no connection left, raise max_connections or lower readers';
    case SqlState.invalidStatementName:
    case SqlState.duplicateStatement:
      return 'a pooler in between does not keep named statements, leave out preparedStatements=true';
    default:
      return isConnectionLost(error) ? 'the database cannot be reached' : 'the database refused';
  }
}

/**
 * The one place where errors of the driver become errors of the contract. Only for statements that have certainly not
 * changed anything; a write whose connection was lost is not one.
 */
export function translateError(error: unknown, doing: string): StorageError {
  if (isStorageError(error)) return error;
  const text = error instanceof Error ? error.message : String(error);
  // Connecting to several addresses fails with an empty message and the reasons inside.
  const inner = text === '' && error instanceof AggregateError ? error.errors.map(String).join('; ') : text;
  return new StorageError(codeOf(error), `${doing}: ${reasonOf(error)} (${inner})`, { cause: error });
}

export function closedError(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the store is closed');
}
