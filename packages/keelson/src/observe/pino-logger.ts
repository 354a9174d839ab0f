import { guardedLogger, type Logger, systemClock } from '@keelson/core';
import { destination, pino } from 'pino';
import type { LogLevel } from '../config/options.ts';

/**
 * JSON lines on stderr, without credentials and bounded; stdout belongs to the one line that reports the server's
 * address.
 */
export function createPinoLogger(level: LogLevel): Logger {
  const timestamp = pino.stdTimeFunctions.isoTime;
  // Errors are plain objects already.
  const inner = pino({ level, base: null, timestamp, serializers: {} }, destination({ dest: 2, sync: true }));
  return guardedLogger(
    {
      enabled: (lineLevel) => inner.isLevelEnabled(lineLevel),
      write: (lineLevel, message, fields) => inner[lineLevel](fields, message),
    },
    () => systemClock.monotonic(),
  );
}
