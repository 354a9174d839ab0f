import type { LogFields, Logger } from '@keelson/core';

type Level = 'debug' | 'info' | 'warn' | 'error';

/** What an error says, and what lies behind it. */
function errorText(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  const cause = error.cause instanceof Error ? `: ${errorText(error.cause)}` : '';
  return `${error.message}${code}${cause}`;
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  return value instanceof Error ? errorText(value) : value;
}

/** One JSON object per line, as the server's log. */
export function createLineLogger(write: (text: string) => void, now: () => number, fixed: LogFields = {}): Logger {
  const line =
    (level: Level) =>
    (message: string, fields: LogFields = {}) =>
      write(`${JSON.stringify({ level, time: new Date(now()).toISOString(), ...fixed, ...fields, msg: message }, plain)}\n`);
  return {
    // Nobody asks for it: the options of the specification have no log level.
    debug: () => {},
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (fields) => createLineLogger(write, now, { ...fixed, ...fields }),
  };
}
