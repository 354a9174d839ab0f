import type { Clock } from '@keelson/core/runtime';
import pg from 'pg';
import { isOutOfConnections } from './translate-error.ts';

/** Pause before another attempt while the server has no connection left. */
const retryPauseMs = 100;
/** Time after which a pool may grow again. */
const growAgainMs = 30_000;

/** A pool of the driver that works with fewer connections than configured while the server has none left. */
export class ConnectionPool {
  readonly #pool: pg.Pool;
  readonly #max: number;
  readonly #clock: Clock;
  /** Established connections; the driver also counts those that are being established. */
  readonly #open = new Set<pg.ClientBase>();
  #cancelGrowth = () => {};

  constructor(config: pg.PoolConfig & { readonly max: number }, clock: Clock, onIdleError: (error: Error) => void) {
    this.#max = config.max;
    this.#clock = clock;
    this.#pool = new pg.Pool(config);
    // An idle connection that breaks is replaced when it is needed.
    this.#pool.on('error', onIdleError);
    this.#pool.on('connect', (client) => {
      client.on('error', () => {});
      this.#open.add(client);
      client.once('end', () => this.#open.delete(client));
    });
  }

  async end(): Promise<void> {
    this.#cancelGrowth();
    await this.#pool.end();
  }

  /**
   * Acquires a connection of this pool. When the server has none left, the call waits for an established connection of
   * this pool, or of `other` when this pool has none. When neither pool has one, the call retries until `deadline`
   * (monotonic milliseconds) or until the caller has cancelled it.
   *
   * @throws errors of the driver
   */
  async take(other: ConnectionPool, deadline: number, isCancelled: () => boolean): Promise<pg.PoolClient> {
    let pool: ConnectionPool = this;
    for (;;) {
      try {
        return await pool.#pool.connect();
      } catch (error) {
        if (!isOutOfConnections(error) || isCancelled() || this.#clock.monotonic() >= deadline) throw error;
        const open = [this, other].find((each) => each.#open.size > 0);
        if (open === undefined) await new Promise<void>((resolve) => this.#clock.after(retryPauseMs, resolve));
        else open.#stopGrowth();
        pool = open ?? this;
      }
    }
  }

  /** Limits the pool to its established connections until the pause is over. */
  #stopGrowth(): void {
    this.#cancelGrowth();
    this.#pool.options.max = this.#open.size;
    this.#cancelGrowth = this.#clock.after(growAgainMs, () => {
      this.#pool.options.max = this.#max;
    });
  }
}
