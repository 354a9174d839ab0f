import { guardedLogger, type Logger, systemClock } from '@keelson/core/runtime';
import { destination, pino } from 'pino';
import type { LogLevel } from '../config/options.ts';

/**
 * Logs JSON lines to stderr, without credentials and with limited length. Only the line with the server's address is
 * written to stdout.
 */
export function createPinoLogger(level: LogLevel): Logger {
  const timestamp = pino.stdTimeFunctions.isoTime;
  // Errors are already converted to plain objects.
  const inner = pino({ level, base: null, timestamp, serializers: {} }, destination({ dest: 2, sync: true }));
  return guardedLogger(
    {
      enabled: (lineLevel) => inner.isLevelEnabled(lineLevel),
      write: (lineLevel, message, fields) => inner[lineLevel](fields, message),
    },
    () => systemClock.monotonic(),
  );
}
