import type { Change, Revision } from '@keelson/core/storage-adapter';
import type { Bounds } from './bounds.ts';
import type { Row } from './database.ts';
import type { ReadChange } from './recent-changes.ts';
import { corrupt, entryOf, type Position, positionOf, revisionOf } from './rows.ts';
import type { StoreReader } from './store-reader.ts';

const pieceChanges = 500;
const pieceBytes = 4 * 1024 * 1024;
/** Log rows that one read may examine, when few of them are in its range. */
const scan = 20_000;
const types = ['create', 'update', 'delete'] as const;

/** The bounds of all keys. */
export const allKeys = { start: '', end: null } as const;

export interface LogPiece {
  readonly changes: readonly ReadChange[];
  /** The piece contains all changes up to this revision. */
  readonly frontier: Revision;
  readonly position: Position;
}

/** Reads the log of the store forward, in bounded pieces. */
export class ChangeLogReader {
  readonly #reader: StoreReader;

  constructor(reader: StoreReader) {
    this.#reader = reader;
  }

  /** @throws StorageError `Compacted` when changes after `after` are compacted */
  async read(after: Revision, bounds: Bounds | typeof allKeys, prevValue: boolean): Promise<LogPiece> {
    const upto = bounds === allKeys ? Number.MAX_SAFE_INTEGER : after + scan;
    const values = [after, upto, bounds.start, bounds.end, pieceChanges, pieceBytes, prevValue];
    const { rows, store, position } = await this.#reader.ask((s) => s.changes, values, changesPosition, {
      urgent: true,
    });
    this.#reader.assertReadable(after, position, false);
    const changes = rows.map((row) => readChange(row, prevValue));
    const examined = Number(store[2]);
    const last = changes.at(-1)?.plain.revision ?? after;
    const complete = changes.length === examined && examined < pieceChanges;
    const frontier = complete ? Math.max(after, Math.min(position.head, this.#reader.beyondLost(upto))) : last;
    return { changes, frontier, position };
  }
}

function changesPosition(row: Row): Position | undefined {
  const [head, compacted, , key, , , stamp] = row;
  return key === null ? positionOf(stamp, head, compacted) : undefined;
}

function readChange(row: Row, prevValue: boolean): ReadChange {
  const [rev, createRevision, prevRevision, key, op, expiresAt, text, bytes, prevExpires, prevText, prevBytes] = row;
  const revision = revisionOf(rev);
  const type = types[Number(op)];
  if (type === undefined || key === null || key === undefined)
    throw corrupt(`the log row of revision ${revision} cannot be read`);
  const entry =
    type === 'delete' ? undefined : entryOf({ key, createRevision, modRevision: rev, expiresAt, text, bytes });
  const plain: Change = { type, revision, key, entry };
  if (!prevValue) return { plain, full: undefined };
  if (type === 'create') return { plain, full: plain };
  const fields = {
    key,
    createRevision,
    modRevision: prevRevision,
    expiresAt: prevExpires,
    text: prevText,
    bytes: prevBytes,
  };
  return { plain, full: { ...plain, prev: entryOf(fields) } };
}
