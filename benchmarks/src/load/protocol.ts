/** What the load process is told to do. Every `{n}` in a request becomes a number that is never used twice. */
export type LoadJob =
  | {
      readonly kind: 'requests';
      readonly port: number;
      readonly connections: number;
      /** Ends after this many milliseconds, or after `count` requests. */
      readonly durationMs?: number;
      readonly count?: number;
      /** Sent in turn. Requests must have the same length for every `{n}`: it is written with `digits` digits. */
      readonly requests: readonly string[];
      readonly firstNumber: number;
    }
  | {
      readonly kind: 'watch';
      readonly port: number;
      readonly watchers: number;
      readonly request: string;
    }
  | {
      /** Resolves when every watcher has received this many bytes since it was told so the last time. */
      readonly kind: 'drain';
      readonly bytes: number;
    }
  | { readonly kind: 'unwatch' };

export interface LoadResult {
  readonly requests: number;
  readonly failures: number;
  readonly nextNumber: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Digits of the numbers that replace `{n}`. */
export const numberDigits = 9;
