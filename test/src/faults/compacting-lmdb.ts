import { ClockToken, LoggerToken } from '@keelson/core/runtime';
import type { StorageAdapter } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { LmdbStore, default as lmdb } from '@keelson/storage-lmdb';
import { shortHistory } from './short-history.ts';

const everyMs = 200;

/** LMDB that compacts its history every 200 ms, which only its own process can do. */
class CompactingStore extends LmdbStore {
  #timer: NodeJS.Timeout | undefined;

  override async ready(): Promise<void> {
    await super.ready();
    this.#timer = setInterval(() => void this.#compact(), everyMs);
  }

  override close(): Promise<void> {
    clearInterval(this.#timer);
    return super.close();
  }

  async #compact(): Promise<void> {
    const bound = (await this.currentRevision()) - shortHistory.minChanges;
    if (bound > 0) await this.compact(bound);
  }
}

const adapter: StorageAdapter<{ readonly path: string }> = {
  ...lmdb,
  module:
    ({ path }) =>
    (bind) => {
      bind(StoreToken, [ClockToken, LoggerToken], (clock, logger) => new CompactingStore({ path, clock, logger }));
    },
};

export default adapter;
