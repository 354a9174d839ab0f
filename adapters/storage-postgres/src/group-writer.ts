import { randomBytes } from 'node:crypto';
import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { Revision, WriteOp, WriteResult } from '@keelson/core/storage-adapter';
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

export interface WriterEvents {
  /** Called after the commit of a batch, before its callers receive the results. */
  committed(head: Revision, ops: readonly WriteOp[]): void;
  /** Called when the log has no partition for the next revisions. */
  full(): Promise<void>;
}

/**
 * Combines the writes of this process: one batch is running, writes that arrive meanwhile form the next one, and an
 * idle writer sends immediately. Every batch has a number by which its outcome is determined when its answer is lost.
 */
export class GroupWriter {
  readonly #settings: Settings;
  readonly #db: Database;
  readonly #state: StoreState;
  readonly #metrics: StoreMetrics;
  readonly #events: WriterEvents;
  readonly #queue = new WriteQueue();
  readonly #connection: WriterConnection;
  /** Identifies the batches of this process; positive and below 2^53. */
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

  /** Takes ownership of a connection over which `StoreState.enter` has succeeded. */
  adopt(client: Client): void {
    this.#connection.adopt(client);
  }

  /**
   * @throws StorageError `Unavailable` or `Timeout` when nothing was written, `OutcomeUnknown` when that cannot be
   *   determined
   */
  write(op: WriteOp, options: WriteOptions): Promise<WriteResult> {
    if (this.#closing) return Promise.reject(closedError());
    const write = this.#queue.push(op, options, this.#settings.clock);
    this.#running ??= this.#run();
    return write.answer;
  }

  /** Finishes the accepted writes, then ends the connection. */
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
      // Writes that begin in the same turn of the event loop share a batch, for example those that follow results of
      // the batch before.
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
      await this.#resolveLost(batch, number, since, error);
      return;
    }
    if (isStorageError(error)) {
      // The server has committed, but its answer is invalid.
      const { message } = error;
      for (const write of batch) {
        write.reject(new StorageError(StorageErrorCode.OutcomeUnknown, message, { key: write.op.key, cause: error }));
      }
      return;
    }
    // The server has reported an error and rolled the batch back.
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

  /** After a lost answer, determines the outcome from the log, and sends again the writes that did not take effect. */
  async #resolveLost(batch: readonly PendingWrite[], number: number, since: Revision, error: unknown): Promise<void> {
    this.#settings.logger.warn('the answer to a batch of writes was lost', {
      writes: batch.length,
      error: String(error),
    });
    try {
      const committed = await resolveBatch(this.#settings, this.#db, { writer: this.#writer, batch: number, since });
      this.#metrics.resolved(committed.size > 0 ? 'committed' : 'absent');
      const head = Math.max(...[...committed.values()].map((write) => write.revision), 0);
      if (head > 0) {
        this.#state.saw(head);
        this.#events.committed(
          head,
          batch.map((write) => write.op),
        );
      }
      for (const write of batch) {
        const result = committed.get(write.op.key);
        if (result !== undefined) write.resolve({ ok: true, ...result });
      }
      this.#giveBack(
        batch.filter((write) => !write.settled),
        error,
      );
    } catch (reason) {
      this.#metrics.resolved('unknown');
      for (const write of batch) {
        const text = `the connection was lost during the write, and its outcome is unknown (${String(reason)})`;
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
      // Not injected: jitter, which spreads load over time and decides no result.
      this.#settings.clock.after(5 + Math.random() * 20, resolve);
    });
  }
}
