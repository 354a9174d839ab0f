/** How a server is reached on loopback. */
export interface LoadTarget {
  readonly port: number;
  /** TLS connections stay open for further jobs on the port, because handshakes would be much of a slice. */
  readonly tls?: boolean;
  /** Over HTTP/2 with TLS, so many streams on a connection; without it HTTP/1.1 with a connection for each. */
  readonly streams?: number;
}

/** The commands for the load process. Every `{n}` in a request becomes a number that is never used twice. */
export type LoadJob =
  | (LoadTarget & {
      readonly kind: 'requests';
      /** Requests under way at the same time, each on a connection or stream. */
      readonly connections: number;
      /** Ends after this many milliseconds, or after `count` requests. */
      readonly durationMs?: number;
      readonly count?: number;
      /** Pause of each connection between two requests. */
      readonly pauseMs?: number;
      /** Requests are due at this rate, and latencies run from then; without it they are sent as soon as possible. */
      readonly perSecond?: number;
      /** Sent in turn. */
      readonly requests: readonly string[];
      readonly firstNumber: number;
    })
  | (LoadTarget & {
      readonly kind: 'watch';
      readonly watchers: number;
      /** So many more open their watch and never read what it sends. */
      readonly stalled: number;
      readonly request: string;
    })
  | (LoadTarget & {
      /** Writes and waits for all watchers, `events` times. */
      readonly kind: 'fanOut';
      readonly request: string;
      readonly events: number;
      /** Writes that are sent together before anybody is waited for. */
      readonly burst: number;
      /** Every watcher must have received this many bytes for each event. */
      readonly bytes: number;
      readonly firstNumber: number;
    })
  | (LoadTarget & {
      /**
       * Writes at a fixed rate, without waiting for watchers, and at the end one more. All are delivered when every
       * watcher has the last one: events of one object arrive in the order of its writes. `{n}` must be in the answer.
       */
      readonly kind: 'paced';
      readonly request: string;
      readonly events: number;
      readonly perSecond: number;
      readonly firstNumber: number;
    })
  | { readonly kind: 'unwatch' };

export interface LoadResult {
  /** Requests, or deliveries to watchers. */
  readonly requests: number;
  /** Number of failed requests by their status code, which is 0 when the connection failed. */
  readonly failures: Readonly<Record<number, number>>;
  readonly nextNumber: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Digits of the numbers that replace `{n}`. */
export const numberDigits = 9;

/** A request with its number. */
export function numbered(template: string, number: number): string {
  return template.includes('{n}') ? template.replaceAll('{n}', String(number).padStart(numberDigits, '0')) : template;
}
