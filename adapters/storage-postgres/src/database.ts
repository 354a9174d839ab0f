import {
  addAbortListener,
  type Clock,
  type Logger,
  removeAbortListener,
  StorageError,
  StorageErrorCode,
  throwIfAborted,
} from '@keelson/core';
import type pg from 'pg';
import { ConnectionPool } from './connection-pool.ts';
import { inspectConnection, isPooled } from './inspect-connection.ts';
import { discard, OpenConnections } from './open-connections.ts';
import type { Settings } from './settings.ts';
import { type Statement, type Statements, statementsOf } from './statements.ts';
import { closedError, isConnectionLost, translateError } from './translate-error.ts';

/** A row as the server sent it: text, or null. */
export type Row = readonly (string | null)[];

/** The part of a connection that runs statements. */
export interface Runner {
  query(config: pg.QueryArrayConfig): Promise<{ readonly rows: unknown[] }>;
}

export interface ReadCall {
  readonly signal?: AbortSignal | undefined;
  /** For what the store itself needs to know: not behind a queue of lists. */
  readonly urgent?: boolean;
}

/** For the store's own questions. */
const systemConnections = 3;

/**
 * The connections of one store that are shared: for reads, and for the store's own questions. Every read has a
 * deadline, may be given up by its caller, and is tried again once when its connection turned out to be dead.
 */
export class Database {
  readonly statements: Statements;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #connections = new OpenConnections();
  readonly #readers: ConnectionPool;
  readonly #system: ConnectionPool;
  /** What ends the reads under way. */
  readonly #underWay = new Set<() => void>();
  #closed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#clock = settings.clock;
    this.#logger = settings.logger;
    this.statements = statementsOf(settings.schema);
    this.#readers = this.#pool(0, settings.readers);
    this.#system = this.#pool(1, systemConnections);
  }

  /** Rows of a statement that changes nothing, or may be repeated. */
  async read(statement: Statement, values: readonly unknown[], call: ReadCall = {}): Promise<readonly Row[]> {
    throwIfAborted(call.signal);
    for (let attempt = 1; ; attempt++) {
      if (this.#closed) throw closedError();
      try {
        return await this.#readOnce(statement, values, call);
      } catch (error) {
        if (attempt === 1 && isConnectionLost(error) && !this.#closed) continue;
        throw this.#closed ? closedError() : translateError(error, 'a read');
      }
    }
  }

  /** Runs `work` in a transaction of its own, for twice as long as a read may take; nothing is repeated. */
  async transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    if (this.#closed) throw closedError();
    const deadline = this.#clock.monotonic() + this.#settings.readTimeoutMs;
    const client = await this.#system.take(this.#readers, deadline, () => this.#closed);
    const end = () => discard(client);
    const cancel = this.#clock.after(2 * this.#settings.readTimeoutMs, end);
    this.#underWay.add(end);
    let failure: Error | undefined;
    try {
      await client.query('begin');
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      throw error;
    } finally {
      cancel();
      this.#underWay.delete(end);
      client.release(failure);
    }
  }

  /** A connection of one's own, looked over; `direct` leads past a pooler. */
  async connect(direct = false): Promise<pg.Client> {
    if (this.#closed) throw closedError();
    const client = new this.#connections.Client(direct ? this.#settings.direct : this.#settings.connection);
    // Without a listener an error between two statements would end the process; the next statement tells as well.
    client.on('error', () => {});
    try {
      await client.connect();
      await inspectConnection(client, this.#settings);
    } catch (error) {
      discard(client);
      throw error;
    }
    if (this.#closed) {
      discard(client);
      throw closedError();
    }
    return client;
  }

  run(runner: Runner, statement: Statement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const { name, text } = statement;
    const named = (this.#settings.preparedStatements ?? !isPooled(runner)) ? { name } : {};
    return runner
      .query({ ...named, text, values: values as unknown[], rowMode: 'array' })
      .then((result) => result.rows as readonly Row[]);
  }

  /** Fails the reads under way with `Closed` and ends all connections, those of {@link connect} included. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const close of [...this.#underWay]) close();
    await this.#connections.ended(Promise.all([this.#readers.end(), this.#system.end()]), this.#clock);
  }

  /** `min` connections stay when they are idle, so that a crowded server does not give them to others. */
  #pool(min: number, max: number): ConnectionPool {
    const inspect = (client: pg.ClientBase) => inspectConnection(client, this.#settings);
    const config = {
      ...this.#settings.connection,
      Client: this.#connections.Client,
      min,
      max,
      idleTimeoutMillis: 60_000,
      // The driver waits for the promise, though its types do not say so.
      onConnect: inspect as (client: pg.ClientBase) => void,
    };
    return new ConnectionPool(config, this.#clock, (error) =>
      this.#logger.debug('idle connection lost', { error: error.message }),
    );
  }

  #readOnce(statement: Statement, values: readonly unknown[], call: ReadCall): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      let client: pg.PoolClient | undefined;
      let settled = false;
      const settle = (action: () => void) => {
        if (settled) return;
        settled = true;
        cancel();
        removeAbortListener(call.signal, abort);
        this.#underWay.delete(close);
        action();
      };
      const release = (broken: boolean) => {
        client?.release(broken);
        client = undefined;
      };
      // Given up: the statement runs to its end, and its connection is used again then.
      const abort = () =>
        settle(() =>
          reject(new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { cause: call.signal?.reason })),
        );
      const close = () => {
        settle(() => reject(closedError()));
        release(true);
      };
      const late = () => {
        const text = `no answer from the database within ${this.#settings.readTimeoutMs} ms`;
        settle(() => reject(new StorageError(StorageErrorCode.Timeout, text)));
        release(true);
      };
      const cancel = this.#clock.after(this.#settings.readTimeoutMs, late);
      addAbortListener(call.signal, abort);
      this.#underWay.add(close);
      const [pool, other] = call.urgent === true ? [this.#system, this.#readers] : [this.#readers, this.#system];
      pool
        .take(other, this.#clock.monotonic() + this.#settings.readTimeoutMs, () => settled)
        .then(async (connected) => {
          client = connected;
          if (settled) return release(false);
          try {
            const rows = await this.run(connected, statement, values);
            release(false);
            settle(() => resolve(rows));
          } catch (error) {
            release(isConnectionLost(error));
            settle(() => reject(error));
          }
        })
        .catch((error: unknown) => settle(() => reject(error)));
    });
  }
}
