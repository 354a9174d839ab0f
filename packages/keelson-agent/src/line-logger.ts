import { guardedLogger, type LogFields, type Logger, systemClock } from '@keelson/core/runtime';

/** The messages of an error and of its causes, on one line. */
function errorText(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  const cause = error.cause instanceof Error ? `: ${errorText(error.cause)}` : '';
  return `${error.message}${code}${cause}`;
}

/** A logger that writes one JSON object per line, like the server: credentials are removed and values are bounded. */
export function createLineLogger(write: (text: string) => void, now: () => number, fixed: LogFields = {}): Logger {
  return guardedLogger(
    {
      // No option selects a log level, so debug messages are never written.
      enabled: (level) => level !== 'debug',
      write: (level, msg, fields) =>
        write(`${JSON.stringify({ level, time: new Date(now()).toISOString(), ...fields, msg })}\n`),
      describe: errorText,
    },
    () => systemClock.monotonic(),
    fixed,
  );
}
