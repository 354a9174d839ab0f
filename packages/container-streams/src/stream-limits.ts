import type { Clock } from '@keelson/core/runtime';
import { IdleWatch } from './idle-watch.ts';

/** Interval of pings. They detect a dead connection even while nothing is read. */
const pingMs = 30_000;

export interface StreamLimits {
  readonly clock: Clock;
  /** Time without content after which a connection is ended; 0 = never. */
  readonly idleMs: number;
}

/** A connection that {@link watched} can monitor. */
export interface Watchable {
  ping(): void;
  readonly closed: Promise<void>;
}

/**
 * Opens a connection and monitors it until it is closed: sends pings, and calls `end` when it was idle for too long.
 * Pings are not activity, because clients send them periodically.
 */
export function watched<T extends Watchable>(
  { clock, idleMs }: StreamLimits,
  end: () => void,
  connect: (onActivity: () => void) => T,
): T {
  const idle = new IdleWatch(clock, idleMs, end);
  const connection = connect(() => idle.touch());
  let cancel = () => {};
  const pingLater = () => {
    cancel = clock.after(pingMs, () => {
      connection.ping();
      pingLater();
    });
  };
  pingLater();
  void connection.closed.then(() => {
    cancel();
    idle.stop();
  });
  return connection;
}
