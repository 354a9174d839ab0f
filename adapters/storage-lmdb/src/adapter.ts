import { type Infer, optional, required, s } from '@keelson/core';
import { ClockToken, LoggerToken } from '@keelson/core/runtime';
import type { StorageAdapter } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { LmdbStore } from './lmdb-store.ts';

const historySchema = s.message(
  'keelson.storage.lmdb.History',
  'The history that readers and watchers of old revisions can use.',
  {
    minChanges: optional(undefined, s.int64({ minimum: 0 }), 'Number of changes that are kept at least; default 1000.'),
    minAgeMs: optional(
      undefined,
      s.int64({ minimum: 0 }),
      'Changes younger than this many milliseconds are kept; default 300000.',
    ),
  },
);

const optionsSchema = s.message('keelson.storage.lmdb.Options', 'A durable store in a directory, for one process.', {
  path: required(undefined, s.string({ minLength: 1 }), 'Directory of the database; created when it does not exist.'),
  history: optional(undefined, historySchema, 'The history window.'),
});

/** Options of the adapter in a config file. */
export type LmdbAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `--storage lmdb:PATH`. */
export const lmdbAdapter: StorageAdapter<LmdbAdapterOptions> = {
  name: 'lmdb',
  optionsSchema,
  parseUrl(url) {
    if (url === '') throw new Error('lmdb: needs the path of a directory after the colon, e.g. lmdb:./data');
    if (url.includes('\0')) throw new Error('lmdb: the path must not contain a zero byte');
    return { path: url };
  },
  module: (options) => (bind) => {
    bind(StoreToken, [ClockToken, LoggerToken], (clock, logger) => {
      const { path, history } = options;
      return new LmdbStore(history === undefined ? { path, clock, logger } : { path, clock, logger, history });
    });
  },
};
