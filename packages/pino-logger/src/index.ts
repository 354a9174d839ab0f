import { guardedLogger, type Logger, systemClock } from '@keelson/core/runtime';
import { destination, pino } from 'pino';

/** Options of the logger. */
export interface PinoLoggerOptions {
  /** What is logged of an error. Default: its name, message, code, stack and cause. */
  readonly describe?: (error: Error) => unknown;
  /** Receives the lines; default: stderr, written synchronously, so that the lines before a crash are complete. */
  readonly sink?: { write(line: string): void };
}

/**
 * Logs one JSON object per line, without credentials and with limited length. Only lines of this level and above are
 * logged, with `silent` none. A line that cannot be written, because the disk is full or the pipe is closed, is
 * dropped.
 */
export function createPinoLogger(
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent',
  { describe, sink = stderr() }: PinoLoggerOptions = {},
): Logger {
  const inner = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Errors are already converted to plain values.
      serializers: {},
    },
    sink,
  );
  return guardedLogger(
    {
      enabled: (lineLevel) => inner.isLevelEnabled(lineLevel),
      write: (lineLevel, message, fields) => inner[lineLevel](fields, message),
      ...(describe === undefined ? {} : { describe }),
    },
    () => systemClock.monotonic(),
  );
}

function stderr() {
  return destination({ dest: 2, sync: true }).on('error', () => {});
}

/** The messages of an error and of its causes on one line, for operators who do not read stacks. */
export function errorText(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  const cause = error.cause instanceof Error ? `: ${errorText(error.cause)}` : '';
  return `${error.message}${code}${cause}`;
}
