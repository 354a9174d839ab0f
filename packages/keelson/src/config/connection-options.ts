import type { ConnectionLimits } from '../server/connection-limits.ts';
import { duration, isObject, refuseUnknownKeys, wholeNumber } from './raw-values.ts';
import { UsageError } from './usage-error.ts';

const numbers = [
  'connections',
  'connectionsPerAddress',
  'streams',
  'streamResetBurst',
  'streamResetsPerSecond',
] as const;
/** In a configuration file times are durations without the `Ms` of their names. */
const times = ['handshake', 'idle', 'headers', 'request', 'unreadAnswer', 'linger', 'ping'] as const;

/** Reads {@link ConnectionLimits} from a configuration file; times are durations such as `90s`. @throws UsageError */
export function parseConnectionLimits(raw: unknown, source: string): Partial<ConnectionLimits> {
  if (!isObject(raw))
    throw new UsageError(`${source} must be an object with some of ${[...numbers, ...times].join(', ')}`);
  refuseUnknownKeys(raw, [...numbers, ...times], source);
  const given = <K extends string>(keys: readonly K[]): K[] => keys.filter((key) => raw[key] !== undefined);
  return {
    ...Object.fromEntries(given(numbers).map((key) => [key, wholeNumber(raw[key], `${source}.${key}`, 1)])),
    ...Object.fromEntries(given(times).map((key) => [`${key}Ms`, duration(raw[key], `${source}.${key}`)])),
  };
}
