import type { WindowLimits } from '@keelson/core';
import { duration, isObject, refuseUnknownKeys, wholeNumber } from './raw-values.ts';
import { UsageError } from './usage-error.ts';

/**
 * The latest changes that a server keeps in memory for watches and exact lists; what is older is read from the store's
 * history. Absent = what {@link WindowLimits} of the watch cache has as its default.
 */
export type WatchWindow = Partial<Pick<WindowLimits, 'maxEvents' | 'maxBytes' | 'maxTotalBytes' | 'maxAgeMs'>>;

const numbers = ['maxEvents', 'maxBytes', 'maxTotalBytes'] as const;

/** Reads `{ maxEvents, maxBytes, maxTotalBytes, maxAge }`; `maxAge` is a duration such as `5m`. @throws UsageError */
export function parseWatchWindow(raw: unknown, source: string): WatchWindow {
  if (!isObject(raw)) throw new UsageError(`${source} must be an object with ${numbers.join(', ')} and maxAge`);
  refuseUnknownKeys(raw, [...numbers, 'maxAge'], source);
  const given = numbers.filter((key) => raw[key] !== undefined);
  return {
    ...Object.fromEntries(given.map((key) => [key, wholeNumber(raw[key], `${source}.${key}`, 1)])),
    ...(raw['maxAge'] === undefined ? {} : { maxAgeMs: duration(raw['maxAge'], `${source}.maxAge`) }),
  };
}
