import { createHash } from 'node:crypto';
import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Logger } from '@keelson/core/runtime';
import type { Revision, StoreIdentity } from '@keelson/core/storage-adapter';
import type { Database, Row, Runner } from './database.ts';
import { type Position, positionOf, revisionOf } from './rows.ts';

/** Revisions strictly between the two bounds are void. */
interface LostRevisions {
  readonly low: Revision;
  readonly high: Revision;
}

interface CachedStore {
  readonly identity: StoreIdentity;
  readonly stamp: string;
  readonly lost: readonly LostRevisions[];
  readonly partitionRevisions: number;
}

/**
 * The cached state of the store, and the check of every answer: it must come from the opened store, its epoch and its
 * timeline, and must not be older than an earlier answer.
 */
export class StoreState {
  readonly #db: Database;
  readonly #logger: Logger;
  readonly #onEpoch: (position: Position) => void;
  #cached: CachedStore | undefined;
  #seen: Revision = 0;
  #entering: Promise<void> | undefined;

  /** @param onEpoch called when the store has entered another epoch, because revisions were lost */
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

  /** Revisions per partition of the log, fixed at the creation of the store. */
  get partitionRevisions(): number {
    return this.#require().partitionRevisions;
  }

  /** The newest revision in any answer. */
  get seen(): Revision {
    return this.#seen;
  }

  /** The notification channel of the servers of this store. */
  get channel(): string {
    return `keelson_${createHash('sha256').update(this.identity.storeId).digest('hex').slice(0, 24)}`;
  }

  /** Reports a revision that was reached; later answers must not be older. */
  saw(head: Revision): void {
    if (head > this.#seen) this.#seen = head;
  }

  /** Returns true for a revision that was lost in a failover. */
  isLost(revision: Revision): boolean {
    return this.#lostAround(revision) !== undefined;
  }

  /** Returns the revision or, when it was lost, the next one that was not; there are no changes in between. */
  beyondLost(revision: Revision): Revision {
    return this.#lostAround(revision)?.high ?? revision;
  }

  #lostAround(revision: Revision): LostRevisions | undefined {
    return this.#cached?.lost.find(({ low, high }) => revision > low && revision < high);
  }

  /**
   * Returns whether an answer is accepted. When it is not, {@link reenter} is called, and the caller may retry the
   * read.
   * @param seen the value of {@link seen} when the read was sent
   */
  async accepts(position: Position, seen: Revision): Promise<boolean> {
    if (position.stamp === this.#cached?.stamp && position.head >= seen) {
      this.saw(position.head);
      return true;
    }
    await this.reenter();
    return false;
  }

  /** Does the same as {@link enter}, over a connection of the pool; concurrent callers share one attempt. */
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

  /**
   * Prepares this connection for use: the server begins another epoch if it has lost revisions that this process has
   * observed, and the cached state is read again. Required on every exclusive connection.
   */
  async enter(runner: Runner): Promise<void> {
    const { enter, state } = this.#db.statements;
    await this.#db.run(runner, enter, [this.#seen]);
    const [row] = await this.#db.run(runner, state);
    this.#learn(row);
  }

  #learn(row: Row | undefined): void {
    if (row === undefined) throw new StorageError(StorageErrorCode.Unavailable, 'the schema contains no store');
    const [storeId, epoch, stamp, head, compacted, partitionRevisions, lost] = row;
    const position = positionOf(stamp, head, compacted);
    const known: CachedStore = {
      identity: { storeId: storeId ?? '', epoch: Number(epoch) },
      stamp: position.stamp,
      partitionRevisions: Number(partitionRevisions),
      lost: (lost ?? '')
        .split(',')
        .filter((text) => text !== '')
        .map((text) => text.split(' '))
        .map(([low, high]) => ({ low: revisionOf(low), high: revisionOf(high) })),
    };
    const before = this.#cached;
    if (before !== undefined && before.identity.storeId !== known.identity.storeId) {
      throw new StorageError(
        StorageErrorCode.EpochChanged,
        `the schema now contains the store ${known.identity.storeId} instead of ${before.identity.storeId}`,
      );
    }
    if (before !== undefined && before.identity.epoch > known.identity.epoch) return;
    this.#cached = known;
    this.saw(position.head);
    if (before === undefined || before.identity.epoch === known.identity.epoch) return;
    this.#logger.warn('history was rewound, the store entered another epoch', {
      epoch: known.identity.epoch,
      before: before.identity.epoch,
      revision: position.head,
    });
    this.#onEpoch(position);
  }

  #require(): CachedStore {
    if (this.#cached === undefined) throw new StorageError(StorageErrorCode.Unavailable, 'the store is not open yet');
    return this.#cached;
  }
}
