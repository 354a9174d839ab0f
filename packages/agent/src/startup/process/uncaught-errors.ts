import type { Logger } from '@keelson/core/runtime';

/** The part of a process that reports uncaught errors. */
export interface ErrorOutlet {
  on(event: 'uncaughtException' | 'unhandledRejection', listener: (error: unknown) => void): unknown;
  off(event: 'uncaughtException' | 'unhandledRejection', listener: (error: unknown) => void): unknown;
}

/**
 * Logs uncaught errors instead of ending the process, so that an error in one loop does not stop the others. With
 * `crash` no listener is installed, so an uncaught error ends the process.
 *
 * @returns a function that removes the listeners
 */
export function guardLoops(outlet: ErrorOutlet, crash: boolean, logger: Logger): () => void {
  if (crash) return () => {};
  const listener = (error: unknown) => logger.error('uncaught error; the agent continues', { err: error });
  outlet.on('uncaughtException', listener);
  outlet.on('unhandledRejection', listener);
  return () => {
    outlet.off('uncaughtException', listener);
    outlet.off('unhandledRejection', listener);
  };
}
