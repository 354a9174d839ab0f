import type { Clock } from '@keelson/core';
import { IdleWatch } from './idle-watch.ts';

/** How often a connection is asked for a sign of life. What is gone is noticed by it even while nothing is read. */
const pingMs = 30_000;

export interface StreamLimits {
  readonly clock: Clock;
  /** A connection over which nothing goes for so long is ended; 0 = never. */
  readonly idleMs: number;
}

/** A connection that can be looked after. */
export interface Watchable {
  ping(): void;
  readonly closed: Promise<void>;
}

/**
 * Makes a connection, and looks after it as long as it is there: it is pinged, and ended by `end` when it was idle for
 * too long. Pings are no activity: callers send them all the time.
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
