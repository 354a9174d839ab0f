import type { Key } from '@keelson/core/storage-adapter';
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
 * Determines the outcome of a batch on a new connection. Returns its successful writes by key. An empty result means
 * that the batch has had no effect and never will: the database records that it must refuse the batch, should it still
 * arrive.
 *
 * @throws when the database cannot be reached within `connectTimeoutMs`
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
