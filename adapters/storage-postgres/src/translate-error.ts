import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import { SqlState, sqlStateOf } from './sql-state.ts';

const endOfConnection: ReadonlySet<string> = new Set([
  SqlState.adminShutdown,
  SqlState.crashShutdown,
  SqlState.cannotConnectNow,
  SqlState.idleSessionTimeout,
]);

/**
 * Returns true when the connection was lost or does not answer, so that the effect of a running statement is unknown.
 * Every error that is not an answer of the server counts.
 */
export function isConnectionLost(error: unknown): boolean {
  if (isStorageError(error)) return false;
  const state = sqlStateOf(error);
  return state === undefined || state.startsWith('08') || endOfConnection.has(state);
}

/** Returns true when the transaction was rolled back for a temporary reason. */
export function isTransient(error: unknown): boolean {
  const state = sqlStateOf(error);
  return (
    state === SqlState.serializationFailure ||
    state === SqlState.deadlockDetected ||
    state === SqlState.lockNotAvailable
  );
}

/** Returns true when a value or key was refused, so that other writes of its batch may succeed without it. */
export function isAboutData(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === SqlState.programLimitExceeded || state?.startsWith('22') === true;
}

/** Returns true when the server has no connection left, so that existing connections must be shared. */
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
      return 'the server accepts no writes, it may be a standby';
    case SqlState.insufficientPrivilege:
      return 'the role lacks a privilege';
    case SqlState.tooManyConnections:
      return 'the server has no connection left, raise max_connections or lower readers';
    case SqlState.invalidStatementName:
    case SqlState.duplicateStatement:
      return 'a pooler does not keep named statements; remove preparedStatements=true';
    default:
      return isConnectionLost(error) ? 'the database cannot be reached' : 'the database refused';
  }
}

/**
 * Converts errors of the driver to errors of the contract. Only for statements that have certainly changed nothing, so
 * not for a write whose connection was lost.
 */
export function translateError(error: unknown, doing: string): StorageError {
  if (isStorageError(error)) return error;
  const text = error instanceof Error ? error.message : String(error);
  // When the connection to each of several addresses fails, the error has an empty message and contains the reasons.
  const inner = text === '' && error instanceof AggregateError ? error.errors.map(String).join('; ') : text;
  return new StorageError(codeOf(error), `${doing}: ${reasonOf(error)} (${inner})`, { cause: error });
}

export function closedError(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the store is closed');
}
