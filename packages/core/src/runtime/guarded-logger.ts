import type { LogFields, Logger } from './logger.ts';
import { safeLogFields } from './safe-log-fields.ts';

/** Level of one log line. */
export type LogLineLevel = 'debug' | 'info' | 'warn' | 'error';

/** Destination of log lines. */
export interface LogSink {
  enabled(level: LogLineLevel): boolean;
  write(level: LogLineLevel, message: string, fields: LogFields): void;
  /** What is shown of an error; default: its name, message, code, stack and cause. */
  readonly describe?: (error: Error) => unknown;
}

/** Number of lines of one message that may be written at once, and number per second after that. */
const burst = 50;
const linesPerSecond = 1;
/**
 * Maximum number of distinct messages whose lines are counted; beyond it, the oldest are forgotten. Messages are
 * constant phrases.
 */
const maxMessages = 500;

interface Allowance {
  lines: number;
  atMs: number;
  suppressed: number;
}

/** Counts the lines of each message, so that no client can fill the disk by causing the same message repeatedly. */
class LineLimit {
  readonly #now: () => number;
  readonly #allowances = new Map<string, Allowance>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many lines of this message were left out before this one; undefined when this one is left out as well. */
  take(key: string): number | undefined {
    const now = this.#now();
    let allowance = this.#allowances.get(key);
    if (allowance === undefined) {
      allowance = { lines: burst, atMs: now, suppressed: 0 };
      this.#allowances.set(key, allowance);
      const [oldest] = this.#allowances.keys();
      if (this.#allowances.size > maxMessages && oldest !== undefined) this.#allowances.delete(oldest);
    }
    allowance.lines = Math.min(burst, allowance.lines + (Math.max(0, now - allowance.atMs) / 1000) * linesPerSecond);
    allowance.atMs = now;
    if (allowance.lines < 1) {
      allowance.suppressed += 1;
      return undefined;
    }
    allowance.lines -= 1;
    const { suppressed } = allowance;
    allowance.suppressed = 0;
    return suppressed;
  }
}

function child(sink: LogSink, limit: LineLimit, fixed: LogFields): Logger {
  const line =
    (level: LogLineLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (!sink.enabled(level)) return;
      const limited = level === 'warn' || level === 'error';
      const suppressed = limited ? limit.take(`${level} ${message}`) : 0;
      if (suppressed === undefined) return;
      const safe = safeLogFields({ ...fixed, ...fields }, sink.describe);
      sink.write(level, message, suppressed === 0 ? safe : { ...safe, suppressed });
    };
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: (fields) => child(sink, limit, { ...fixed, ...fields }),
  };
}

/**
 * A logger whose lines hold no credentials and are bounded, see {@link safeLogFields}. Warnings and errors of one
 * message are limited to 50 at once and one per second afterwards; the next line states in `suppressed` how many were
 * omitted.
 *
 * @param now milliseconds of a clock that does not go back
 */
export function guardedLogger(sink: LogSink, now: () => number, fixed: LogFields = {}): Logger {
  return child(sink, new LineLimit(now), fixed);
}
