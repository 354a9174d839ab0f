import { type Infer, optional, s } from '@keelson/core';
import { ClockToken } from '@keelson/core/runtime';
import type { StorageAdapter } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { MemoryStore } from './memory-store.ts';

const historySchema = s.message(
  'keelson.storage.memory.History',
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

const optionsSchema = s.message(
  'keelson.storage.memory.Options',
  'A store in memory, which is lost when the process ends.',
  {
    history: optional(undefined, historySchema, 'The history window.'),
  },
);

/** Options of the adapter in a config file. */
export type MemoryAdapterOptions = Infer<typeof optionsSchema>;

/** The adapter behind `--storage memory:`. */
export const memoryAdapter: StorageAdapter<MemoryAdapterOptions> = {
  name: 'memory',
  optionsSchema,
  parseUrl(url) {
    if (url !== '') throw new Error(`memory: accepts nothing after the colon, got ${JSON.stringify(url)}`);
    return {};
  },
  module: (options) => (bind) => {
    bind(StoreToken, [ClockToken], (clock) => {
      const { history } = options;
      return new MemoryStore(history === undefined ? { clock } : { clock, history });
    });
  },
};
