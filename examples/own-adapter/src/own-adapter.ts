import { type Infer, optional, required, s } from '@keelson/core';
import { ClockToken } from '@keelson/core/runtime';
import type { StorageAdapter } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { LinesStore } from './lines-store.ts';

const historySchema = s.message(
  'example.lines.History',
  'The history that readers and watchers of old revisions can use.',
  {
    minChanges: optional(undefined, s.int64({ minimum: 0 }), 'At least this many changes; default 1000.'),
    minAgeMs: optional(
      undefined,
      s.int64({ minimum: 0 }),
      'At least changes this young, in milliseconds; default 300000.',
    ),
  },
);

const optionsSchema = s.message('example.lines.Options', 'A store in a file of JSON lines, for one process.', {
  path: required(undefined, s.string({ minLength: 1 }), 'The file; made when it does not exist.'),
  history: optional(undefined, historySchema, 'The history window.'),
});

/** The public interface of an adapter: its name, its options, and the construction of the store. */
const linesAdapter: StorageAdapter<Infer<typeof optionsSchema>> = {
  name: 'lines',
  optionsSchema,
  parseUrl(url) {
    if (url === '') throw new Error('lines: needs the path of a file after the colon');
    return { path: url };
  },
  module:
    ({ path, history }) =>
    (bind) => {
      bind(StoreToken, [ClockToken], (clock) => new LinesStore({ path, clock, ...(history ? { history } : {}) }));
    },
};

export default linesAdapter;
