import { checkNotCompacted, type Revision, StorageError, StorageErrorCode } from '@keelson/core';
import type { Database, ReadCall, Row } from './database.ts';
import type { Position } from './rows.ts';
import { positionOf } from './rows.ts';
import type { Statement, Statements } from './statements.ts';
import type { StoreState } from './store-state.ts';

const attempts = 4;

export interface Answer {
  /** Without the one about the store. */
  readonly rows: readonly Row[];
  /** The row about the store. */
  readonly store: Row;
  readonly position: Position;
}

/** Asks the store questions whose answers tell what store, epoch and revision they come from, and believes no other. */
export class StoreReader {
  readonly #db: Database;
  readonly #state: StoreState;
  #compacted: Revision = 0;
  readonly #onPosition: (position: Position) => void;

  /** `onPosition` hears of every answer that was believed. */
  constructor(db: Database, state: StoreState, onPosition: (position: Position) => void) {
    this.#db = db;
    this.#state = state;
    this.#onPosition = onPosition;
  }

  /** The highest compacted bound that any answer has shown. */
  get compacted(): Revision {
    return this.#compacted;
  }

  sawCompacted(revision: Revision): void {
    if (revision > this.#compacted) this.#compacted = revision;
  }

  /** `positionIn` finds the row about the store. */
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
        throw new StorageError(StorageErrorCode.Unavailable, 'the schema holds no store');
      }
      if (!(await this.#state.accepts(position, seen))) continue;
      this.sawCompacted(position.compacted);
      this.#onPosition(position);
      return { rows, store, position };
    }
    throw new StorageError(StorageErrorCode.EpochChanged, 'the store changes its epoch again and again');
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
   * @throws StorageError `Compacted` when the history from `revision` on is gone or was taken back; `FutureRevision`
   *   when it is not reached, if that matters.
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
      `revision ${revision} is not reached, the store is at ${position.head}`,
      { revision: position.head },
    );
  }
}

/** For statements whose one row begins with stamp, revision and compacted bound. */
export function headPosition([stamp, head, compacted]: Row): Position {
  return positionOf(stamp, head, compacted);
}
