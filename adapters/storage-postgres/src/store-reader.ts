import { StorageError, StorageErrorCode } from '@keelson/core';
import { checkNotCompacted, type Revision } from '@keelson/core/storage-adapter';
import type { Database, ReadCall, Row } from './database.ts';
import type { Position } from './rows.ts';
import { positionOf } from './rows.ts';
import type { Statement, Statements } from './statements.ts';
import type { StoreState } from './store-state.ts';

const attempts = 4;

export interface Answer {
  /** Rows without the one with the state of the store. */
  readonly rows: readonly Row[];
  /** The row with the state of the store. */
  readonly store: Row;
  readonly position: Position;
}

/** Runs reads whose answers contain store, epoch and revision, and rejects answers of another store or epoch. */
export class StoreReader {
  readonly #db: Database;
  readonly #state: StoreState;
  #compacted: Revision = 0;
  readonly #onPosition: (position: Position) => void;

  /** @param onPosition called with the position of every accepted answer */
  constructor(db: Database, state: StoreState, onPosition: (position: Position) => void) {
    this.#db = db;
    this.#state = state;
    this.#onPosition = onPosition;
  }

  /** The highest compacted revision in any answer. */
  get compacted(): Revision {
    return this.#compacted;
  }

  sawCompacted(revision: Revision): void {
    if (revision > this.#compacted) this.#compacted = revision;
  }

  /** @param positionIn recognises the row with the state of the store */
  async ask(
    choose: (statements: Statements) => Statement,
    values: readonly unknown[],
    positionIn: (row: Row) => Position | undefined,
    call: ReadCall,
  ): Promise<Answer> {
    const statement = choose(this.#db.statements);
    for (let attempt = 0; attempt < attempts; attempt++) {
      const { seen } = this.#state;
      const all = await this.#db.read(statement, values, call);
      let store: Row | undefined;
      let position: Position | undefined;
      const rows = all.filter((row) => {
        const found = position === undefined ? positionIn(row) : undefined;
        if (found === undefined) return true;
        position = found;
        store = row;
        return false;
      });
      if (store === undefined || position === undefined) {
        throw new StorageError(StorageErrorCode.Unavailable, 'the schema contains no store');
      }
      if (!(await this.#state.accepts(position, seen))) continue;
      this.sawCompacted(position.compacted);
      this.#onPosition(position);
      return { rows, store, position };
    }
    throw new StorageError(StorageErrorCode.EpochChanged, 'the store changes its epoch repeatedly');
  }

  /** See {@link StoreState.beyondLost}. */
  beyondLost(revision: Revision): Revision {
    return this.#state.beyondLost(revision);
  }

  async position(call: ReadCall = {}): Promise<Position> {
    const { position } = await this.ask((s) => s.head, [], headPosition, { ...call, urgent: true });
    return position;
  }

  /**
   * @throws StorageError `Compacted` when the history from `revision` on is compacted or was lost; `FutureRevision`
   *   when
   *   the revision has not been reached, if the caller requires it
   */
  assertReadable(revision: Revision, position: Position, reached = true): void {
    checkNotCompacted(revision, Math.max(position.compacted, this.#compacted));
    if (this.#state.isLost(revision)) {
      throw new StorageError(
        StorageErrorCode.Compacted,
        `revision ${revision} was lost when the database failed over`,
        {
          revision: position.head,
        },
      );
    }
    if (!reached || revision <= position.head) return;
    throw new StorageError(
      StorageErrorCode.FutureRevision,
      `revision ${revision} has not been reached, the store is at ${position.head}`,
      { revision: position.head },
    );
  }
}

/** Reads the position from the row of a statement that returns one row, which begins with the position. */
export function headPosition([stamp, head, compacted]: Row): Position {
  return positionOf(stamp, head, compacted);
}
