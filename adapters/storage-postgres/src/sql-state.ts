/** SQLSTATEs that the adapter distinguishes. Messages of the server are never parsed. */
export const SqlState = {
  connectionException: '08000',
  connectionDoesNotExist: '08003',
  connectionFailure: '08006',
  cannotConnect: '08001',
  checkViolation: '23514',
  uniqueViolation: '23505',
  readOnlyTransaction: '25006',
  insufficientPrivilege: '42501',
  undefinedTable: '42P01',
  undefinedFunction: '42883',
  undefinedObject: '42704',
  duplicateSchema: '42P06',
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  lockNotAvailable: '55P03',
  objectInUse: '55006',
  wrongState: '55000',
  queryCanceled: '57014',
  tooManyConnections: '53300',
  /** Raised by the server; poolers use it for most refusals, above all for a lack of connections. */
  protocolViolation: '08P01',
  invalidStatementName: '26000',
  duplicateStatement: '42P05',
  adminShutdown: '57P01',
  crashShutdown: '57P02',
  cannotConnectNow: '57P03',
  idleSessionTimeout: '57P05',
  programLimitExceeded: '54000',
  dataCorrupted: 'XX001',
  indexCorrupted: 'XX002',
  warning: '01000',
  /** Raised by functions of the store: the store, epoch or timeline differs from that of the caller. */
  otherStamp: 'KS001',
  /** Raised by functions of the store: writes require the isolation level read committed. */
  wrongIsolation: 'KS002',
  /**
   * Raised by functions of the store: the outcome of the batch was determined after its answer was lost, so that it
   * must not take effect any more.
   */
  givenUp: 'KS003',
} as const;

/** Returns the SQLSTATE of an error that the server sent; undefined for other errors. */
export function sqlStateOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // Errors of sockets have a code as well (ECONNRESET), but no severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}
