import { randomBytes } from 'node:crypto';
import {
  isStorageError,
  type Revision,
  StorageError,
  StorageErrorCode,
  type WriteOp,
  type WriteResult,
} from '@keelson/core';
import type { Client } from 'pg';
import type { Database, Row } from './database.ts';
import type { StoreMetrics } from './metrics.ts';
import { resolveBatch } from './resolve-batch.ts';
import type { Settings } from './settings.ts';
import { SqlState, sqlStateOf } from './sql-state.ts';
import type { StoreState } from './store-state.ts';
import { closedError, isAboutData, isConnectionLost, isTransient, translateError } from './translate-error.ts';
import { decodeResults, encodeWrites } from './write-batch.ts';
import { type PendingWrite, type WriteOptions, WriteQueue } from './write-queue.ts';
import { WriterConnection } from './writer-connection.ts';

const maxReturns = 5;

/** What the writer tells its owner. */
export interface WriterEvents {
  /** A batch is committed; called before its callers are answered. */
  committed(head: Revision, ops: readonly WriteOp[]): void;
  /** The log has no place for the next revisions. */
  full(): Promise<void>;
}

/**
 * The writes of this process, combined: one batch is under way, what arrives meanwhile is the next one, and an idle
 * writer sends at once. Every batch has a number, under which it can be looked for when its answer is lost.
 */
export class GroupWriter {
  readonly #settings: Settings;
  readonly #db: Database;
  readonly #state: StoreState;
  readonly #metrics: StoreMetrics;
  readonly #events: WriterEvents;
  readonly #queue = new WriteQueue();
  readonly #connection: WriterConnection;
  /** Tells the batches of this process from all others; positive and below 2^53. */
  readonly #writer = Number(randomBytes(8).readBigUInt64BE() >> 12n);
  #batches = 0;
  #running: Promise<void> | undefined;
  #closing = false;

  constructor(settings: Settings, db: Database, state: StoreState, metrics: StoreMetrics, events: WriterEvents) {
    this.#settings = settings;
    this.#db = db;
    this.#state = state;
    this.#metrics = metrics;
    this.#events = events;
    this.#connection = new WriterConnection(settings, db, state);
  }

  /** Takes over a connection that has entered the store. */
  adopt(client: Client): void {
    this.#connection.adopt(client);
  }

  /**
   * @throws StorageError `Unavailable` or `Timeout` when nothing happened, `OutcomeUnknown` when that cannot be known.
   */
  write(op: WriteOp, options: WriteOptions): Promise<WriteResult> {
    if (this.#closing) return Promise.reject(closedError());
    const write = this.#queue.push(op, options, this.#settings.clock);
    this.#running ??= this.#run();
    return write.answer;
  }

  /** Finishes what was asked for, then ends the connection. */
  async close(): Promise<void> {
    this.#closing = true;
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#settings.clock.after(this.#settings.connectTimeoutMs, resolve);
    });
    await Promise.race([this.#running, late]);
    cancel();
    this.#queue.fail(closedError());
    await this.#connection.close();
  }

  async #run(): Promise<void> {
    while (!this.#queue.empty) {
      // Writes that begin in the same turn of the loop, such as those whose predecessors were just answered, travel
      // together.
      await new Promise((resolve) => setImmediate(resolve));
      const batch = this.#queue.take();
      if (batch.length > 0) await this.#send(batch);
    }
    this.#running = undefined;
  }

  /** Never rejects. */
  async #send(batch: readonly PendingWrite[]): Promise<void> {
    const number = ++this.#batches;
    const since = this.#state.seen;
    const ops = batch.map((write) => write.op);
    const started = this.#settings.clock.monotonic();
    try {
      await this.#connection.open();
    } catch (error) {
      const unavailable = translateError(error, 'a write');
      for (const write of batch) write.reject(unavailable);
      this.#queue.fail(unavailable);
      return;
    }
    try {
      const channel = this.#settings.notify === 'txn' ? this.#state.channel : null;
      const values = [this.#state.stamp, this.#writer, number, channel, ...encodeWrites(ops)];
      const rows = await this.#connection.ask(this.#db.statements.apply, values);
      this.#answer(batch, ops, rows);
      this.#metrics.batch(batch.length, (this.#settings.clock.monotonic() - started) / 1000);
    } catch (error) {
      await this.#failed(batch, number, since, error);
    }
  }

  #answer(batch: readonly PendingWrite[], ops: readonly WriteOp[], rows: readonly Row[]): void {
    const { results, head } = decodeResults(ops, rows);
    this.#state.saw(head);
    this.#events.committed(head, ops);
    for (const [i, write] of batch.entries()) {
      const result = results[i];
      if (result !== undefined) write.resolve(result);
    }
  }

  async #failed(batch: readonly PendingWrite[], number: number, since: Revision, error: unknown): Promise<void> {
    if (isConnectionLost(error)) {
      this.#connection.drop();
      await this.#lookFor(batch, number, since, error);
      return;
    }
    if (isStorageError(error)) {
      // The server has committed, and something about its answer is wrong.
      const { message } = error;
      for (const write of batch) {
        write.reject(new StorageError(StorageErrorCode.OutcomeUnknown, message, { key: write.op.key, cause: error }));
      }
      return;
    }
    // The server has answered, and rolled everything back.
    try {
      if (sqlStateOf(error) === SqlState.otherStamp) await this.#state.reenter();
      else if (sqlStateOf(error) === SqlState.checkViolation) await this.#events.full();
      else if (isTransient(error)) await this.#pause();
      else if (batch.length > 1 && isAboutData(error)) for (const write of batch) write.alone = true;
      else throw error;
      this.#giveBack(batch, error);
    } catch (reason) {
      const failure = translateError(reason, 'a write');
      for (const write of batch) write.reject(failure);
    }
  }

  /** The answer is lost: settles the outcome by the log, and sends again what certainly did not happen. */
  async #lookFor(batch: readonly PendingWrite[], number: number, since: Revision, error: unknown): Promise<void> {
    this.#settings.logger.warn('the answer to a batch of writes was lost', {
      writes: batch.length,
      error: String(error),
    });
    try {
      const found = await resolveBatch(this.#settings, this.#db, { writer: this.#writer, batch: number, since });
      this.#metrics.resolved(found.size > 0 ? 'committed' : 'absent');
      const head = Math.max(...[...found.values()].map((write) => write.revision), 0);
      if (head > 0) {
        this.#state.saw(head);
        this.#events.committed(
          head,
          batch.map((write) => write.op),
        );
      }
      for (const write of batch) {
        const result = found.get(write.op.key);
        if (result !== undefined) write.resolve({ ok: true, ...result });
      }
      this.#giveBack(
        batch.filter((write) => !write.settled),
        error,
      );
    } catch (reason) {
      this.#metrics.resolved('unknown');
      for (const write of batch) {
        const text = `the connection was lost during the write, and its outcome could not be found out (${String(reason)})`;
        write.reject(new StorageError(StorageErrorCode.OutcomeUnknown, text, { key: write.op.key, cause: reason }));
      }
    }
  }

  #giveBack(batch: readonly PendingWrite[], error: unknown): void {
    const tired: PendingWrite[] = [];
    for (const write of batch) if (++write.returns > maxReturns) tired.push(write);
    this.#queue.giveBack(batch.filter((write) => !tired.includes(write)));
    if (tired.length === 0) return;
    const code =
      sqlStateOf(error) === SqlState.otherStamp ? StorageErrorCode.EpochChanged : StorageErrorCode.Unavailable;
    const text = `the write did not happen in ${maxReturns} attempts (${String(error)})`;
    const failure = new StorageError(code, text, { cause: error });
    for (const write of tired) write.reject(failure);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#settings.clock.after(5 + Math.random() * 20, resolve);
    });
  }
}
