import { readFileSync } from 'node:fs';
import { UsageError } from '../base/usage-error.ts';
import { duration, isObject, refuseUnknownKeys, wholeNumber } from './raw-values.ts';

/** Bounds on the connections of a server. Times are milliseconds and are met within {@link sweepMs}. */
export interface ConnectionLimits {
  /** Connections at the same time. Default: three quarters of the descriptors that the process may open. */
  readonly connections: number;
  /**
   * Connections of one remote address. Default: three quarters of `connections`. Where all clients come through one
   * proxy or load balancer, this is better set to `connections`.
   */
  readonly connectionsPerAddress: number;
  /** TLS handshake, and after it the first frame of an HTTP/2 client. Default 10,000. */
  readonly handshakeMs: number;
  /**
   * Connections on which no request is running: those that have not been used yet, and those between two requests; an
   * HTTP/2 connection with unfinished headers is one of them. They are closed without an answer, HTTP/2 with GOAWAY.
   * Default 90,000.
   */
  readonly idleMs: number;
  /** The headers of an HTTP/1.1 request, from their first byte; then 408. Default 10,000. */
  readonly headersMs: number;
  /** A whole HTTP/1.1 request; then 408. Default 60,000. */
  readonly requestMs: number;
  /** For the client to receive the rest of an answer that is complete on the server. Default 120,000. */
  readonly unreadAnswerMs: number;
  /** For the client to close a connection that the server has ended. Default 10,000. */
  readonly lingerMs: number;
  /**
   * Between two PING frames to an HTTP/2 client, whether it has open streams or not. A client that has not answered one
   * when the next is due is gone, and its connection is closed. Default 30,000.
   */
  readonly pingMs: number;
  /** Open streams of one HTTP/2 connection. Default 100. */
  readonly streams: number;
  /** Streams that an HTTP/2 client may reset at once; beyond that its connection ends. Default 200. */
  readonly streamResetBurst: number;
  /** Resets by which this allowance grows again. Default 50 per second. */
  readonly streamResetsPerSecond: number;
}

/** How often connections are checked against their bounds. */
export const sweepMs = 1000;

/** Descriptors that this process may open; where the system has no such file a usual limit. */
function descriptors(): number {
  try {
    const [, soft] = /^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === 'unlimited' ? 2 ** 20 : Number(soft ?? 4096);
  } catch {
    return 4096;
  }
}

/** The bounds with every default filled in. */
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
