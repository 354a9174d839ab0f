import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Client } from 'pg';
import type { Database, Row } from './database.ts';
import { discard } from './open-connections.ts';
import { retrying } from './retrying.ts';
import type { Settings } from './settings.ts';
import { SqlState } from './sql-state.ts';
import type { Statement } from './statements.ts';
import type { StoreState } from './store-state.ts';

/** The connection over which this process writes; opened again after it was lost. */
export class WriterConnection {
  readonly #settings: Settings;
  readonly #db: Database;
  readonly #state: StoreState;
  #client: Client | undefined;
  #doubtful = false;

  constructor(settings: Settings, db: Database, state: StoreState) {
    this.#settings = settings;
    this.#db = db;
    this.#state = state;
  }

  adopt(client: Client): void {
    this.#client = client;
    client.on('end', () => {
      if (this.#client === client) this.#client = undefined;
    });
    // A commit that stopped waiting for its synchronous standby is a success with a warning.
    client.on('notice', ({ severity, code }) => {
      if (severity === 'WARNING' && code === SqlState.warning) this.#doubtful = true;
    });
  }

  /** Opens the connection; retries for `connectTimeoutMs`. */
  async open(): Promise<void> {
    if (this.#client !== undefined) return;
    await retrying(this.#settings, async () => {
      const client = await this.#db.connect();
      try {
        await this.#state.enter(client);
        this.adopt(client);
      } catch (error) {
        discard(client);
        throw error;
      }
    });
  }

  /** @throws errors of the driver; an answer that does not arrive in time counts as a lost connection */
  async ask(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    const client = this.#client;
    if (client === undefined) throw new Error('the connection was lost before the batch was sent');
    this.#doubtful = false;
    const cancel = this.#settings.clock.after(this.#settings.writeTimeoutMs, () => discard(client));
    try {
      const rows = await this.#db.run(client, statement, values);
      if (this.#doubtful) {
        const text = 'the write is committed, but possibly not on the synchronous standby';
        throw new StorageError(StorageErrorCode.OutcomeUnknown, text);
      }
      return rows;
    } finally {
      cancel();
    }
  }

  drop(): void {
    if (this.#client !== undefined) discard(this.#client);
    this.#client = undefined;
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    const cancel = this.#settings.clock.after(1000, () => discard(client));
    await client.end().catch(() => {});
    cancel();
  }
}
