import { writeSync } from 'node:fs';
import { systemClock } from './clock.ts';
import { guardedLogger, type LogLineLevel } from './guarded-logger.ts';
import type { Logger } from './logger.ts';

/** @public */
export interface JsonLoggerOptions {
  /** What is logged of an error. Default: its name, message, code, stack and cause. */
  readonly describe?: (error: Error) => unknown;
  /** Receives the lines; default: stderr, written synchronously, so that the lines before a crash are complete. */
  readonly sink?: { write(line: string): void };
}

const levels: readonly LogLineLevel[] = ['debug', 'info', 'warn', 'error'];

/** Pause before the next attempt to write to a full pipe that does not block. */
const retryMs = 5;
const pause = new Int32Array(new SharedArrayBuffer(4));

/** A line that cannot be written, because the disk is full or the pipe is closed, is dropped. */
const stderr = {
  write(line: string): void {
    for (let rest = Buffer.from(line); rest.length > 0; ) {
      try {
        rest = rest.subarray(writeSync(2, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(pause, 0, 0, retryMs);
      }
    }
  },
};

/**
 * Logs one JSON object per line, without credentials and with limited length. Only lines of this level and above are
 * logged, with `silent` none.
 *
 * @public
 */
export function createJsonLogger(
  level: LogLineLevel | 'silent',
  { describe, sink = stderr }: JsonLoggerOptions = {},
): Logger {
  const enabled = level === 'silent' ? [] : levels.slice(levels.indexOf(level));
  return guardedLogger(
    {
      enabled: (lineLevel) => enabled.includes(lineLevel),
      write: (lineLevel, msg, fields) =>
        sink.write(`${JSON.stringify({ level: lineLevel, time: new Date().toISOString(), ...fields, msg })}\n`),
      ...(describe === undefined ? {} : { describe }),
    },
    () => systemClock.monotonic(),
  );
}

/** The messages of an error and of its causes on one line, for operators who do not read stacks. */
export function errorText(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
  const cause = error.cause instanceof Error ? `: ${errorText(error.cause)}` : '';
  return `${error.message}${code}${cause}`;
}
