import { StorageError, StorageErrorCode } from '@keelson/core';
import { addAbortListener, type Clock, type Logger, removeAbortListener } from '@keelson/core/runtime';
import { throwIfAborted } from '@keelson/core/storage-adapter';
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
  /** Uses the connections for internal reads of the store, so that the read does not wait behind lists of callers. */
  readonly urgent?: boolean;
}

/** Connections for internal reads of the store. */
const systemConnections = 3;

/**
 * The shared connections of one store: for reads of callers, and for internal reads. Every read has a deadline, can be
 * cancelled by its caller, and is retried once when its connection was dead.
 */
export class Database {
  readonly statements: Statements;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #connections = new OpenConnections();
  readonly #readers: ConnectionPool;
  readonly #system: ConnectionPool;
  /** Functions that end the running reads. */
  readonly #running = new Set<() => void>();
  #closed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#clock = settings.clock;
    this.#logger = settings.logger;
    this.statements = statementsOf(settings.schema);
    this.#readers = this.#pool(0, settings.readers);
    this.#system = this.#pool(1, systemConnections);
  }

  /** Returns the rows of a statement that changes nothing or is idempotent. */
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

  /** Runs `work` in a separate transaction, with twice the time limit of a read. Never retries. */
  async transaction<T>(work: (runner: Runner) => Promise<T>): Promise<T> {
    if (this.#closed) throw closedError();
    const deadline = this.#clock.monotonic() + this.#settings.readTimeoutMs;
    const client = await this.#system.take(this.#readers, deadline, () => this.#closed);
    const end = () => discard(client);
    const cancel = this.#clock.after(2 * this.#settings.readTimeoutMs, end);
    this.#running.add(end);
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
      this.#running.delete(end);
      client.release(failure);
    }
  }

  /** Opens and inspects an exclusive connection. @param direct uses `listenUrl`, which bypasses a pooler */
  async connect(direct = false): Promise<pg.Client> {
    if (this.#closed) throw closedError();
    const client = new this.#connections.Client(direct ? this.#settings.direct : this.#settings.connection);
    // Without a listener an error between two statements would end the process; the next statement reports it too.
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

  /** Fails running reads with `Closed` and ends all connections, including those of {@link connect}. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const close of [...this.#running]) close();
    await this.#connections.ended(Promise.all([this.#readers.end(), this.#system.end()]), this.#clock);
  }

  /** @param min idle connections that stay open, so that a server without free connections does not reassign them */
  #pool(min: number, max: number): ConnectionPool {
    const inspect = (client: pg.ClientBase) => inspectConnection(client, this.#settings);
    const config = {
      ...this.#settings.connection,
      Client: this.#connections.Client,
      min,
      max,
      idleTimeoutMillis: 60_000,
      // The driver waits for the promise, although its types do not declare it.
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
        this.#running.delete(close);
        action();
      };
      const release = (broken: boolean) => {
        client?.release(broken);
        client = undefined;
      };
      // A cancelled statement runs to its end; then its connection is reused.
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
      this.#running.add(close);
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
