import {
  checkNotCompacted,
  LogWatchStream,
  type OrderedRange,
  type Revision,
  type WatchBatch,
} from '@keelson/core/storage-adapter';
import { CatchUp } from './catch-up.ts';
import type { SharedWatch } from './shared-watch.ts';

/**
 * A position in the ring of a {@link SharedWatch}. A stream whose position is older than the ring reads history on a
 * watch of its own until it has reached the ring.
 */
export class EtcdWatchStream extends LogWatchStream {
  readonly #shared: SharedWatch;
  readonly #range: OrderedRange;
  #catchUp: CatchUp | undefined;

  /** @param current the revision the store had when `after` was checked. */
  constructor(
    shared: SharedWatch,
    range: OrderedRange,
    after: Revision,
    current: Revision,
    signal: AbortSignal | undefined,
  ) {
    super(after, signal);
    this.#shared = shared;
    this.#range = range;
    shared.join(this, after, current);
  }

  /** The position in the history of etcd. */
  get position(): Revision {
    return Math.max(this.frontier, this.#shared.options.begin());
  }

  /** Repeats the requests of `advanceTo` after the shared watch was replaced. */
  seekAgain(): void {
    for (const revision of this.requestedRevisions) this.#shared.want(revision);
    this.pump();
  }

  protected override requestAdvance(revision: Revision): void {
    this.#shared.want(revision);
    this.#catchUp?.want(revision);
  }

  protected read(): WatchBatch | undefined {
    checkNotCompacted(this.frontier, this.#shared.options.bound());
    const { ring } = this.#shared;
    if (ring === undefined) return undefined;
    const { position } = this;
    if (position >= ring.floor) {
      this.#endCatchUp();
      return ring.frontier > position ? ring.read(position, this.#range) : undefined;
    }
    this.#catchUp ??= this.#startCatchUp(ring.floor);
    return this.#catchUp.take(this.#range);
  }

  protected setWaiting(waiting: boolean): void {
    this.#shared.setWaiting(this, waiting);
  }

  protected release(): void {
    this.#endCatchUp();
    this.#shared.leave(this);
  }

  #startCatchUp(floor: Revision): CatchUp {
    const catchUp = new CatchUp(
      this.#shared.options,
      this.position,
      () => this.pump(),
      (error) => this.fail(error),
    );
    // `floor` is requested explicitly: other users of etcd may have advanced the revision to it, and then no change of
    // this store advances the watch so far.
    catchUp.want(Math.max(floor, ...this.requestedRevisions));
    return catchUp;
  }

  #endCatchUp(): void {
    this.#catchUp?.close();
    this.#catchUp = undefined;
  }
}
