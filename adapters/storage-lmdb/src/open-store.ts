import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError, StorageErrorCode } from '@keelson/core';
import { type Clock, type Logger, makePrivateDirectory } from '@keelson/core/runtime';
import { type ChangeLog, checkNotCompacted, type Key, type Revision, WatchHub } from '@keelson/core/storage-adapter';
import { checkPages } from './check-pages.ts';
import { Compactor, type HistoryWindow } from './compactor.ts';
import { DirectoryLock } from './directory-lock.ts';
import { DiskReserve, isDiskFull } from './disk-reserve.ts';
import { Environment } from './environment.ts';
import { ExpirySweeper } from './expiry-sweeper.ts';
import { GroupWriter, type PendingWrite } from './group-writer.ts';
import { HistoryReader } from './history-reader.ts';
import { RecentChanges } from './recent-changes.ts';
import { corrupt } from './records.ts';

export interface OpenStoreOptions {
  readonly path: string;
  readonly readOnly: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly window: HistoryWindow;
  /** Called once when another process has written to the store, before its watches end. */
  readonly onFenced: (error: StorageError) => void;
  /** Throws when the store was closed; called between the steps of opening. */
  readonly throwIfClosed: () => void;
}

/** The components of an open store, from the acquisition of the directory until its release. */
export class OpenStore {
  readonly readOnly: boolean;
  readonly env: Environment;
  readonly writer: GroupWriter;
  readonly history: HistoryReader;
  readonly hub: WatchHub;
  readonly compactor: Compactor;
  readonly sweeper: ExpirySweeper;
  readonly #options: OpenStoreOptions;
  readonly #lock: DirectoryLock;
  readonly #recent: RecentChanges;
  /** Absent in a read-only store. */
  readonly #reserve: DiskReserve | undefined;

  private constructor(options: OpenStoreOptions, lock: DirectoryLock, env: Environment) {
    const { path, readOnly, clock, logger, window } = options;
    this.readOnly = readOnly;
    this.env = env;
    this.#options = options;
    this.#lock = lock;
    let dropHistory = () => {};
    if (!readOnly) {
      this.#reserve = new DiskReserve(
        path,
        clock,
        logger,
        () => env.freeBytes(),
        () => dropHistory(),
      );
      this.#reserve.begin();
    }
    const recent = new RecentChanges(env.head());
    const history = new HistoryReader(env);
    const writer = new GroupWriter(env, { committed: (writes) => this.#committed(writes) }, clock, this.#reserve);
    const compactor = new Compactor(env, clock, logger, window, () => writer.head, readOnly);
    const expire = (key: Key, revision: Revision) => writer.write({ op: 'delete', key, expect: revision }, {});
    this.#recent = recent;
    this.history = history;
    this.writer = writer;
    this.compactor = compactor;
    this.hub = new WatchHub(changeLog(recent, history, compactor));
    this.sweeper = new ExpirySweeper(env, clock, logger, expire, readOnly);
    // Drops all history when the disk is full, because its pages are needed for deletes and later for new objects.
    dropHistory = () => {
      compactor.raise(writer.head).catch((err: unknown) => logger.warn('history cannot be compacted now', { err }));
    };
    env.onFenced = (error) => {
      options.onFenced(error);
      this.hub.close();
    };
  }

  /**
   * @throws StorageError `Unavailable` when the directory is in use or cannot be opened, `Corrupt` when it contains no
   *   store or a damaged one.
   */
  static async open(options: OpenStoreOptions): Promise<OpenStore> {
    try {
      return await OpenStore.#open(options);
    } catch (error) {
      if (options.readOnly || !isDiskFull(error) || !DiskReserve.giveUp(options.path)) throw error;
      return OpenStore.#open(options);
    }
  }

  static async #open(options: OpenStoreOptions): Promise<OpenStore> {
    const { path, readOnly, logger, throwIfClosed } = options;
    let lock: DirectoryLock | undefined;
    try {
      if (readOnly) requireStore(path);
      else makePrivateDirectory(path, logger);
      lock = await DirectoryLock.acquire(path, logger);
      throwIfClosed();
      await requireSoundPages(join(path, 'data.mdb'), throwIfClosed);
      return new OpenStore(options, lock, new Environment(path, logger, readOnly));
    } catch (error) {
      lock?.release();
      if (error instanceof StorageError) throw error;
      const text = error instanceof Error ? error.message : String(error);
      throw new StorageError(StorageErrorCode.Unavailable, `the store in ${path} cannot be opened: ${text}`, {
        cause: error,
      });
    }
  }

  /** Continues above `seen` in another epoch. Returns the components that replace this object. */
  async leapOver(seen: Revision): Promise<OpenStore> {
    await this.#stop();
    await this.env.leapOver(seen);
    return new OpenStore(this.#options, this.#lock, this.env);
  }

  /** Resolves when no write, no expiry and no removal of old changes is running. */
  async settled(): Promise<void> {
    await this.sweeper.settled();
    await this.compactor.settled();
    await this.writer.drained();
  }

  async close(): Promise<void> {
    await this.#stop();
    try {
      await this.env.close();
    } finally {
      this.#lock.release();
    }
  }

  async #stop(): Promise<void> {
    this.#reserve?.stop();
    await this.sweeper.stop();
    await this.writer.drained();
    await this.compactor.stop();
    this.hub.close();
  }

  /**
   * Reports writes that are on disk to the recent changes, the compactor and the watches, before the callers of the
   * writes get their results.
   */
  #committed(writes: readonly PendingWrite[]): void {
    for (const { type, revision, key, before, after } of writes)
      this.#recent.push(type, revision, key, after?.entry, before?.entry);
    this.compactor.noteWrites();
    this.hub.wake();
  }
}

function changeLog(recent: RecentChanges, history: HistoryReader, compactor: Compactor): ChangeLog {
  return {
    get head() {
      return recent.head;
    },
    read(after, range, prevValue) {
      checkNotCompacted(after, compactor.bound);
      if (after >= recent.after) return recent.read(after, range, prevValue);
      return history.changes(Math.max(after, 1), recent.head, range, prevValue);
    },
  };
}

/** @throws StorageError `Corrupt` when pages of the file are damaged. */
async function requireSoundPages(file: string, throwIfClosed: () => void): Promise<void> {
  const damages = await checkPages(file, throwIfClosed);
  throwIfClosed();
  if (damages.length === 0) return;
  throw corrupt(`${file} is damaged and cannot be used; restore a back-up. Found: ${damages.join('; ')}`);
}

function requireStore(path: string): void {
  if (existsSync(join(path, 'data.mdb'))) return;
  throw new StorageError(StorageErrorCode.Unavailable, `there is no store in ${path}`);
}
