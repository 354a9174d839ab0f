import type { LogFields, Logger } from '@keelson/core';
import { destination, type Logger as Pino, pino } from 'pino';
import type { LogLevel } from '../config/options.ts';

function wrap(inner: Pino): Logger {
  const line =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (message: string, fields: LogFields = {}) =>
      inner[level](fields, message);
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (fields) => wrap(inner.child(fields)),
  };
}

/** JSON lines on stderr; stdout belongs to the one line that says where the server is. */
export function createPinoLogger(level: LogLevel): Logger {
  return wrap(pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination({ dest: 2, sync: true })));
}
