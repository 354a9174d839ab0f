import type { Key } from '@keelson/core';
import type { Database } from './database.ts';
import { discard } from './open-connections.ts';
import { retrying } from './retrying.ts';
import { revisionOf } from './rows.ts';
import type { Settings } from './settings.ts';
import type { FoundWrite } from './write-queue.ts';

export interface LostBatch {
  readonly writer: number;
  readonly batch: number;
  /** A revision that the store had reached before the batch was sent. */
  readonly since: number;
}

/**
 * Finds out on a new connection what became of a batch: its granted writes by key. None means that the batch has not
 * happened, and never will; for that the database is told to refuse it, in case it is still on its way.
 *
 * @throws when the database cannot be asked within `connectTimeoutMs`.
 */
export function resolveBatch(settings: Settings, db: Database, lost: LostBatch): Promise<ReadonlyMap<Key, FoundWrite>> {
  return retrying(settings, async () => {
    const client = await db.connect();
    const cancel = settings.clock.after(settings.connectTimeoutMs, () => discard(client));
    try {
      const rows = await db.run(client, db.statements.resolve, [lost.writer, lost.batch, lost.since]);
      return new Map(
        rows.map(([key, revision, createRevision]): [Key, FoundWrite] => [
          key ?? '',
          { revision: revisionOf(revision), createRevision: revisionOf(createRevision) },
        ]),
      );
    } finally {
      cancel();
      discard(client);
    }
  });
}
