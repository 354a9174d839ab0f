import { DurationError, durationMs } from '@keelson/core';
import { suggestion, UsageError } from '@keelson/core/internal';

export type RawObject = Readonly<Record<string, unknown>>;

export const isObject = (raw: unknown): raw is RawObject =>
  typeof raw === 'object' && raw !== null && !Array.isArray(raw);

/** @throws UsageError when an object has an unknown key */
export function rejectUnknownKeys(raw: RawObject, known: readonly string[], source: string): void {
  const unknown = Object.keys(raw).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new UsageError(`${source} has no key ${unknown}${suggestion(unknown, known)}`);
}

/** @throws UsageError */
export function text(raw: unknown, source: string): string {
  if (typeof raw === 'string' && raw !== '') return raw;
  throw new UsageError(`${source} must be a non-empty string`);
}

/** @throws UsageError */
export function wholeNumber(raw: unknown, source: string, least = 0): number {
  if (typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= least) return raw;
  throw new UsageError(`${source} must be a whole number of at least ${least}, not ${JSON.stringify(raw)}`);
}

/** Milliseconds of a duration such as `10m`. @throws UsageError */
export function duration(raw: unknown, source: string): number {
  try {
    const ms = durationMs(text(raw, source));
    if (ms >= 0) return Math.ceil(ms);
  } catch (error) {
    if (!(error instanceof DurationError)) throw error;
  }
  throw new UsageError(`${source} must be a duration such as 10m or 1h30m, not ${JSON.stringify(raw)}`);
}
