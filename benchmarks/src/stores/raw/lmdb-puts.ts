import { open } from 'lmdb';
import type { Raw } from '../ground.ts';
import { keepInFlight } from '../in-flight.ts';

/** Puts into one table, acknowledged when they are on disk. */
export function lmdbPuts(path: string, value: Buffer): Raw {
  const database = open<Buffer, string>({ path, encoding: 'binary', overlappingSync: false });
  let written = 0;
  return {
    what: 'durable puts into one LMDB table',
    write: (inFlight, durationMs) =>
      keepInFlight(inFlight, durationMs, () => database.put(`/written/${written++}`, value)),
    fill: async (keys) => {
      await Promise.all(keys.map((key) => database.put(key, value)));
    },
    get: async (key) => database.getBinary(key),
    page: async (start) => database.getRange({ start, limit: 500 }).asArray,
    close: () => database.close(),
  };
}
