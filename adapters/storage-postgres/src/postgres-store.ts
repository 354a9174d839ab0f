import { StorageError, StorageErrorCode } from '@keelson/core';
import {
  Coalesced,
  checkKey,
  checkWrite,
  type Key,
  type KeyRange,
  type ListChunk,
  type ReadOptions,
  type Revision,
  type Store,
  type StoreCapabilities,
  type StoreIdentity,
  throwIfAborted,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core/storage-adapter';
import { after, boundsOf } from './bounds.ts';
import { ChangeFeed, type WatchOptions } from './change-feed.ts';
import { ChangeLogReader } from './change-log.ts';
import { Database } from './database.ts';
import { GroupWriter } from './group-writer.ts';
import { isPooled } from './inspect-connection.ts';
import { listPages, readPage } from './list-pages.ts';
import { Listener } from './listener.ts';
import { Maintenance } from './maintenance.ts';
import { type StoreMetrics, storeMetrics } from './metrics.ts';
import { migrate, readMigrations } from './migrations.ts';
import { discard } from './open-connections.ts';
import { Poller } from './poller.ts';
import { type Position, revisionOf } from './rows.ts';
import { type PostgresStoreOptions, resolveSettings, type Settings } from './settings.ts';
import { headPosition, StoreReader } from './store-reader.ts';
import { StoreState } from './store-state.ts';
import { closedError, translateError } from './translate-error.ts';
import type { WriteOptions } from './write-queue.ts';

const lateMs = 1000;

/**
 * A {@link Store} in one schema of a PostgreSQL database, shared by any number of processes. A lock in the database
 * orders the revisions. Every process reads the acknowledged writes of all others.
 */
export class PostgresStore implements Store {
  readonly capabilities: StoreCapabilities = {
    denseRevisions: true,
    oneChangePerRevision: true,
    multiWriter: true,
    durable: true,
    maxKeyBytes: 1024,
    maxValueBytes: 3 * 1024 * 1024,
  };
  readonly #settings: Settings;
  readonly #db: Database;
  readonly #state: StoreState;
  readonly #reader: StoreReader;
  readonly #feed: ChangeFeed;
  readonly #writer: GroupWriter;
  readonly #maintenance: Maintenance;
  readonly #poller: Poller;
  readonly #metrics: StoreMetrics;
  readonly #position: Coalesced<Position>;
  #listener: Listener | undefined;
  #opening: Promise<void> | undefined;
  /** The highest revision in any notification. */
  #notified: Revision = 0;
  #closing: Promise<void> | undefined;

  /** Does not connect yet. @throws Error when an option is invalid */
  constructor(options: PostgresStoreOptions = {}) {
    const settings = resolveSettings(options);
    this.#settings = settings;
    this.#metrics = storeMetrics(settings.metrics, settings.schema);
    this.#db = new Database(settings);
    this.#state = new StoreState(this.#db, settings.logger, ({ head }) => this.#feed.restart(head));
    this.#reader = new StoreReader(this.#db, this.#state, ({ head }) => this.#feed.hint(head));
    this.#feed = new ChangeFeed(settings, new ChangeLogReader(this.#reader), this.#reader, this.#metrics);
    this.#feed.onWatched = () => this.#poller.start();
    this.#position = new Coalesced(() => this.#reader.position());
    this.#maintenance = new Maintenance(settings, this.#db, {
      remove: (key, expect) => this.#writer.write({ op: 'delete', key, expect }, {}),
      compacted: (revision) => this.#sawCompacted(revision),
      partitionRevisions: () => this.#state.partitionRevisions,
    });
    this.#writer = new GroupWriter(settings, this.#db, this.#state, this.#metrics, {
      committed: (head, ops) => this.#committed(head, ops),
      full: () => this.#maintenance.extend(),
    });
    this.#poller = new Poller({
      clock: settings.clock,
      healthy: () => this.#listener?.healthy ?? false,
      watched: () => this.#feed.watched,
      poll: () => this.#poll(),
    });
  }

  async ready(): Promise<void> {
    this.#assertOpen();
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    await this.#opening;
  }

  async #open(): Promise<void> {
    try {
      const client = await this.#db.connect();
      try {
        await migrate(client, this.#settings, await readMigrations());
        await this.#state.enter(client);
      } catch (error) {
        discard(client);
        throw error;
      }
      if (isPooled(client))
        this.#settings.logger.info('the connection leads through a pooler: statements are sent unnamed');
      this.#writer.adopt(client);
      await this.#maintenance.extend();
    } catch (error) {
      throw translateError(error, 'opening the store');
    }
    this.#assertOpen();
    this.#maintenance.start();
    if (this.#settings.notify === 'off') return;
    this.#listener = new Listener(this.#settings, this.#db, this.#metrics, this.#state.channel, {
      notified: (revision) => {
        this.#notified = Math.max(this.#notified, revision);
        this.#poller.moved();
        this.#feed.hint(revision);
      },
      listening: () => void this.#pollAfterListening(),
    });
    this.#listener.start();
  }

  async identity(): Promise<StoreIdentity> {
    this.#assertOpen();
    return this.#state.identity;
  }

  async write(op: WriteOp, options: WriteOptions = {}): Promise<WriteResult> {
    this.#assertOpen();
    throwIfAborted(options.signal);
    checkWrite(op, this.capabilities);
    return this.#writer.write(op, options);
  }

  async get(key: Key, options: ReadOptions & { readonly revision?: Revision } = {}) {
    this.#begin(options);
    checkKey(key);
    const { entries, revision } = await readPage(this.#reader, { start: key, end: after(key) }, 1, options);
    return { entry: entries[0], revision };
  }

  async *list(
    range: KeyRange,
    options: ReadOptions & { readonly revision?: Revision; readonly limit?: number; readonly keysOnly?: boolean } = {},
  ): AsyncGenerator<ListChunk, void, undefined> {
    this.#begin(options);
    yield* listPages(this.#reader, boundsOf(range), options, () => this.#assertOpen());
  }

  async count(range: KeyRange, options: ReadOptions & { readonly revision?: Revision } = {}) {
    this.#begin(options);
    const { start, end } = boundsOf(range);
    const { revision, signal } = options;
    const { position, store } =
      revision === undefined
        ? await this.#reader.ask((s) => s.countNow, [start, end], headPosition, { signal })
        : await this.#reader.ask((s) => s.countThen, [start, end, revision], headPosition, { signal });
    if (revision !== undefined) this.#reader.assertReadable(revision, position);
    return { count: Number(store[3]), exact: true, revision: revision ?? position.head };
  }

  async currentRevision(options: ReadOptions = {}): Promise<Revision> {
    this.#begin(options);
    return (await this.#position.get(options.signal)).head;
  }

  async watch(range: KeyRange, options: WatchOptions): Promise<WatchStream> {
    this.#begin(options);
    boundsOf(range);
    const position = await this.#position.get(options.signal);
    return this.#feed.open(range, options, position);
  }

  async compact(upTo: Revision): Promise<void> {
    this.#assertOpen();
    const { head } = await this.#position.get();
    if (upTo > head) {
      const text = `revision ${upTo} has not been reached, the store is at ${head}`;
      throw new StorageError(StorageErrorCode.FutureRevision, text, { revision: head });
    }
    await this.#feed.catchUp(upTo);
    const rows = await this.#db.read(this.#db.statements.compact, [upTo], { urgent: true });
    const compacted = revisionOf(rows[0]?.[1]);
    this.#sawCompacted(compacted);
    await this.#maintenance.dropOld(compacted).catch((error: unknown) => {
      this.#settings.logger.warn('dropping old history failed, another attempt follows', { error: String(error) });
    });
  }

  async compactedRevision(): Promise<Revision> {
    this.#assertOpen();
    return (await this.#position.get()).compacted;
  }

  async passOver(seen: Revision): Promise<void> {
    this.#assertOpen();
    this.#state.saw(seen);
    await this.#state.reenter();
    await this.#maintenance.extend();
  }

  /**
   * Runs the periodic work immediately: deletes expired keys, compacts old history, adds partitions to the log.
   */
  async maintain(): Promise<void> {
    this.#assertOpen();
    try {
      await this.#maintenance.run();
    } catch (error) {
      throw translateError(error, 'maintenance');
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#poller.stop();
    this.#feed.close();
    await this.#maintenance.stop();
    await this.#writer.close();
    await this.#listener?.stop();
    await this.#db.close();
  }

  #committed(head: Revision, ops: readonly WriteOp[]): void {
    this.#poller.moved();
    this.#feed.hint(head);
    if (this.#settings.notify === 'after') this.#listener?.notify(head);
    this.#maintenance.reached(head);
    for (const op of ops) if (op.op === 'put' && op.ttlMs !== undefined) this.#maintenance.expiresIn(op.ttlMs);
  }

  #sawCompacted(revision: Revision): void {
    this.#reader.sawCompacted(revision);
    this.#feed.compacted();
  }

  /** Returns true when the store has changed without a notification. */
  async #poll(): Promise<boolean> {
    const reported = this.#feed.reported;
    const { head } = await this.#position.get();
    if (head <= reported) return false;
    // A notification that is only late is not counted as missing.
    if (this.#listener?.healthy === true) {
      this.#settings.clock.after(lateMs, () => {
        if (this.#notified < head) this.#metrics.notificationLost();
      });
    }
    return true;
  }

  async #pollAfterListening(): Promise<void> {
    try {
      await this.#state.reenter();
      await this.#position.get();
    } catch (error) {
      this.#settings.logger.debug('the position of the store could not be read', { error: String(error) });
    }
  }

  #begin(options: ReadOptions): void {
    this.#assertOpen();
    throwIfAborted(options.signal);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }
}
