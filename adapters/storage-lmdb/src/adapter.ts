import {
  ClockToken,
  type Infer,
  LoggerToken,
  optional,
  required,
  type StorageAdapter,
  StoreToken,
  s,
} from '@keelson/core';
import { LmdbStore } from './lmdb-store.ts';

const historySchema = s.message('keelson.storage.lmdb.History', 'What is kept for readers and watchers of the past.', {
  minChanges: optional(undefined, s.int64({ minimum: 0 }), 'At least this many changes; default 1000.'),
  minAgeMs: optional(
    undefined,
    s.int64({ minimum: 0 }),
    'At least changes this young, in milliseconds; default 300000.',
  ),
});

const optionsSchema = s.message('keelson.storage.lmdb.Options', 'A durable store in a directory, for one process.', {
  path: required(undefined, s.string({ minLength: 1 }), 'Directory of the database; made when it does not exist.'),
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
