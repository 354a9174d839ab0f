import type { Clock } from '@keelson/core';
import pg from 'pg';
import { isOutOfConnections } from './translate-error.ts';

/** Pause before another attempt while the server has no connection left. */
const crowdedMs = 100;
/** After which a pool may grow again. */
const growAgainMs = 30_000;

/** A pool of the driver that gets along with fewer connections than it may have, when the server has none left. */
export class ConnectionPool {
  readonly #pool: pg.Pool;
  readonly #max: number;
  readonly #clock: Clock;
  /** Connections that stand; the driver also counts those that are being made. */
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
   * A connection of this pool. When the server has none left, one that stands has to do: of this pool, or of `other`
   * when this one has none. While there is none at all the server is asked again, until `deadline` (monotonic
   * milliseconds) or until the caller has given up.
   *
   * @throws whatever the driver does
   */
  async take(other: ConnectionPool, deadline: number, givenUp: () => boolean): Promise<pg.PoolClient> {
    let pool: ConnectionPool = this;
    for (;;) {
      try {
        return await pool.#pool.connect();
      } catch (error) {
        if (!isOutOfConnections(error) || givenUp() || this.#clock.monotonic() >= deadline) throw error;
        const open = [this, other].find((each) => each.#open.size > 0);
        if (open === undefined) await new Promise<void>((resolve) => this.#clock.after(crowdedMs, resolve));
        else open.#stay();
        pool = open ?? this;
      }
    }
  }

  /** Makes no further connections for a while. */
  #stay(): void {
    this.#cancelGrowth();
    this.#pool.options.max = this.#open.size;
    this.#cancelGrowth = this.#clock.after(growAgainMs, () => {
      this.#pool.options.max = this.#max;
    });
  }
}
