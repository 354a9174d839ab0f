import type { Logger } from '@keelson/core';

/** The part of a process that tells of errors which nobody caught. */
export interface ErrorOutlet {
  on(event: 'uncaughtException' | 'unhandledRejection', listener: (error: unknown) => void): unknown;
  off(event: 'uncaughtException' | 'unhandledRejection', listener: (error: unknown) => void): unknown;
}

/**
 * Logs errors that nobody caught, and lets the other loops of the agent go on: pods of a node should not wait for each
 * other's faults. With `crash` the process ends instead, as a process without such a guard does. Returns how to take
 * the guard away.
 */
export function guardLoops(outlet: ErrorOutlet, crash: boolean, logger: Logger): () => void {
  if (crash) return () => {};
  const listener = (error: unknown) => logger.error('an error was not caught; the agent goes on', { err: error });
  outlet.on('uncaughtException', listener);
  outlet.on('unhandledRejection', listener);
  return () => {
    outlet.off('uncaughtException', listener);
    outlet.off('unhandledRejection', listener);
  };
}
