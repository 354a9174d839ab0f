import { createHash } from 'node:crypto';
import { type Logger, type Revision, StorageError, StorageErrorCode, type StoreIdentity } from '@keelson/core';
import type { Database, Row, Runner } from './database.ts';
import { type Position, positionOf, revisionOf } from './rows.ts';

/** Revisions strictly between the two are void. */
interface LostRevisions {
  readonly low: Revision;
  readonly high: Revision;
}

interface Known {
  readonly identity: StoreIdentity;
  readonly stamp: string;
  readonly lost: readonly LostRevisions[];
  readonly partitionRevisions: number;
}

/**
 * What this process knows of the store as a whole, and its judgement of every answer: whether it comes from the store,
 * the epoch and the timeline that are known, and from a time not before what was seen already.
 */
export class StoreState {
  readonly #db: Database;
  readonly #logger: Logger;
  readonly #onEpoch: (position: Position) => void;
  #known: Known | undefined;
  #seen: Revision = 0;
  #entering: Promise<void> | undefined;

  /** `onEpoch` is told when history was rewound. */
  constructor(db: Database, logger: Logger, onEpoch: (position: Position) => void) {
    this.#db = db;
    this.#logger = logger;
    this.#onEpoch = onEpoch;
  }

  get identity(): StoreIdentity {
    return this.#require().identity;
  }

  get stamp(): string {
    return this.#require().stamp;
  }

  /** Revisions per partition of the log, as the store was made. */
  get partitionRevisions(): number {
    return this.#require().partitionRevisions;
  }

  /** The newest revision that any answer has shown. */
  get seen(): Revision {
    return this.#seen;
  }

  /** The name under which servers of this store tell each other of writes. */
  get channel(): string {
    return `keelson_${createHash('sha256').update(this.identity.storeId).digest('hex').slice(0, 24)}`;
  }

  /** A revision that was reached; counts for all later answers. */
  saw(head: Revision): void {
    if (head > this.#seen) this.#seen = head;
  }

  /** True for a revision of a past that was taken back. */
  isLost(revision: Revision): boolean {
    return this.#lostAround(revision) !== undefined;
  }

  /** The revision itself or, when it is lost, the next one that is not: nothing was written in between. */
  beyondLost(revision: Revision): Revision {
    return this.#lostAround(revision)?.high ?? revision;
  }

  #lostAround(revision: Revision): LostRevisions | undefined {
    return this.#known?.lost.find(({ low, high }) => revision > low && revision < high);
  }

  /**
   * Whether an answer can be believed; `seen` is what {@link seen} was when the question was asked. When it cannot, the
   * store is entered anew, and the question may be asked again.
   */
  async accepts(position: Position, seen: Revision): Promise<boolean> {
    if (position.stamp === this.#known?.stamp && position.head >= seen) {
      this.saw(position.head);
      return true;
    }
    await this.reenter();
    return false;
  }

  /** Enters the store over a connection of the pool; once for callers that come together. */
  reenter(): Promise<void> {
    this.#entering ??= this.#reenter().finally(() => {
      this.#entering = undefined;
    });
    return this.#entering;
  }

  async #reenter(): Promise<void> {
    const { enter, state } = this.#db.statements;
    await this.#db.read(enter, [this.#seen], { urgent: true });
    const [row] = await this.#db.read(state, [], { urgent: true });
    this.#learn(row);
  }

  /** Enters the store over this connection: to be called on each new connection that others do not share. */
  async enter(runner: Runner): Promise<void> {
    const { enter, state } = this.#db.statements;
    await this.#db.run(runner, enter, [this.#seen]);
    const [row] = await this.#db.run(runner, state);
    this.#learn(row);
  }

  #learn(row: Row | undefined): void {
    if (row === undefined) throw new StorageError(StorageErrorCode.Unavailable, 'the schema holds no store');
    const [storeId, epoch, stamp, head, compacted, partitionRevisions, lost] = row;
    const position = positionOf(stamp, head, compacted);
    const known: Known = {
      identity: { storeId: storeId ?? '', epoch: Number(epoch) },
      stamp: position.stamp,
      partitionRevisions: Number(partitionRevisions),
      lost: (lost ?? '')
        .split(',')
        .filter((text) => text !== '')
        .map((text) => text.split(' '))
        .map(([low, high]) => ({ low: revisionOf(low), high: revisionOf(high) })),
    };
    const before = this.#known;
    if (before !== undefined && before.identity.storeId !== known.identity.storeId) {
      throw new StorageError(
        StorageErrorCode.EpochChanged,
        `the schema now holds another store (${known.identity.storeId}) than the one that was opened (${before.identity.storeId})`,
      );
    }
    if (before !== undefined && before.identity.epoch > known.identity.epoch) return;
    this.#known = known;
    this.saw(position.head);
    if (before === undefined || before.identity.epoch === known.identity.epoch) return;
    this.#logger.warn('history was rewound, the store entered another epoch', {
      epoch: known.identity.epoch,
      before: before.identity.epoch,
      revision: position.head,
    });
    this.#onEpoch(position);
  }

  #require(): Known {
    if (this.#known === undefined) throw new StorageError(StorageErrorCode.Unavailable, 'the store is not open yet');
    return this.#known;
  }
}
