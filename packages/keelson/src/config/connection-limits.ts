import { readFileSync } from 'node:fs';
import { isJsonObject, nonNegativeDuration, rejectUnknownKeys, UsageError, wholeNumber } from '@keelson/core/internal';

/**
 * Limits on the connections of a server. Times are in milliseconds and are enforced with a precision of {@link
 * sweepMs}.
 */
export interface ConnectionLimits {
  /** Concurrent connections. Default: three quarters of the file descriptors that the process may open. */
  readonly connections: number;
  /**
   * Concurrent connections of one remote address. Default: three quarters of `connections`. Set it to `connections`
   * when all clients connect through one proxy or load balancer.
   */
  readonly connectionsPerAddress: number;
  /** Timeout of the TLS handshake, and after it of the first frame of an HTTP/2 client. Default 10,000. */
  readonly handshakeMs: number;
  /**
   * Timeout of connections without a running request: unused ones and those between two requests. An HTTP/2 connection
   * with incomplete headers is one of them. They are closed without a response, HTTP/2 with GOAWAY. Default 90,000.
   */
  readonly idleMs: number;
  /** Timeout of the headers of an HTTP/1.1 request from their first byte; then 408. Default 10,000. */
  readonly headersMs: number;
  /** Timeout of a whole HTTP/1.1 request; then 408. Default 60,000. */
  readonly requestMs: number;
  /** Timeout for the client to read the rest of a complete response. Default 120,000. */
  readonly unreadAnswerMs: number;
  /** Timeout for the client to close a connection that the server has ended. Default 10,000. */
  readonly lingerMs: number;
  /**
   * Interval of PING frames to HTTP/2 clients, with and without open streams. The connection is closed when a PING has
   * not been answered before the next one. Default 30,000.
   */
  readonly pingMs: number;
  /** Open streams of one HTTP/2 connection. Default 100. */
  readonly streams: number;
  /** Streams that an HTTP/2 client may reset in a burst; beyond that its connection is closed. Default 200. */
  readonly streamResetBurst: number;
  /** Rate at which the burst is replenished. Default 50 per second. */
  readonly streamResetsPerSecond: number;
}

/** Interval at which connections are checked, in milliseconds. */
export const sweepMs = 1000;

/** File descriptors that this process may open; 4096 where the system does not report the limit. */
function descriptors(): number {
  try {
    const [, soft] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === 'unlimited' ? 2 ** 20 : Number(soft ?? 4096);
  } catch {
    return 4096;
  }
}

/** Adds the default of every absent limit. */
export function connectionLimits(given: Partial<ConnectionLimits> = {}): ConnectionLimits {
  const connections = given.connections ?? Math.floor(descriptors() * 0.75);
  return {
    connections,
    connectionsPerAddress: Math.ceil(connections * 0.75),
    handshakeMs: 10_000,
    idleMs: 90_000,
    headersMs: 10_000,
    requestMs: 60_000,
    unreadAnswerMs: 120_000,
    lingerMs: 10_000,
    pingMs: 30_000,
    streams: 100,
    streamResetBurst: 200,
    streamResetsPerSecond: 50,
    ...given,
  };
}

const numbers = [
  'connections',
  'connectionsPerAddress',
  'streams',
  'streamResetBurst',
  'streamResetsPerSecond',
] as const;
/** In a config file the names of times have no `Ms`, because the values are durations. */
const times = ['handshake', 'idle', 'headers', 'request', 'unreadAnswer', 'linger', 'ping'] as const;

/** Parses {@link ConnectionLimits} of a config file; times are durations such as `90s`. @throws UsageError */
export function parseConnectionLimits(raw: unknown, source: string): Partial<ConnectionLimits> {
  if (!isJsonObject(raw))
    throw new UsageError(`${source} must be an object with some of ${[...numbers, ...times].join(', ')}`);
  rejectUnknownKeys(raw, [...numbers, ...times], source);
  const given = <K extends string>(keys: readonly K[]): K[] => keys.filter((key) => raw[key] !== undefined);
  return {
    ...Object.fromEntries(given(numbers).map((key) => [key, wholeNumber(raw[key], `${source}.${key}`, 1)])),
    ...Object.fromEntries(given(times).map((key) => [`${key}Ms`, nonNegativeDuration(raw[key], `${source}.${key}`)])),
  };
}
