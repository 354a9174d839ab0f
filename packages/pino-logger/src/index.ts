import { createRequire } from 'node:module';
import { guardedLogger, type Logger, systemClock } from '@keelson/core/runtime';
import type * as Pino from 'pino';

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** Pino is loaded after the start, because loading it is a twentieth of the start of a server. */
const loadAfterMs = 1000;

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
export function createPinoLogger(level: (typeof levels)[number], { describe, sink }: PinoLoggerOptions = {}): Logger {
  let made: Pino.Logger | undefined;
  const inner = () => (made ??= create(level, sink));
  // The first line may be about a lack of file descriptors, of which loading needs some.
  systemClock.after(loadAfterMs, inner);
  return guardedLogger(
    {
      enabled: (lineLevel) => levels.indexOf(lineLevel) >= levels.indexOf(level),
      write: (lineLevel, message, fields) => inner()[lineLevel](fields, message),
      ...(describe === undefined ? {} : { describe }),
    },
    () => systemClock.monotonic(),
  );
}

function create(level: string, sink: PinoLoggerOptions['sink']): Pino.Logger {
  const { destination, pino } = createRequire(import.meta.url)('pino') as typeof Pino;
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Errors are already converted to plain values.
      serializers: {},
    },
    sink ?? destination({ dest: 2, sync: true }).on('error', () => {}),
  );
}

/** The messages of an error and of its causes on one line, for operators who do not read stacks. */
export function errorText(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  const cause = error.cause instanceof Error ? `: ${errorText(error.cause)}` : '';
  return `${error.message}${code}${cause}`;
}
