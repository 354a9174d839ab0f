import assert from 'node:assert/strict';
import type { Change, KeyRange, Revision, Store, WatchBatch, WatchStream } from '@keelson/core/storage-adapter';
import { inRange, type PlainChange, plainChange } from './model.ts';
import { everything, handled } from './store-driver.ts';

/** Reads a watch stream and checks the invariants of every batch. */
export class Watcher {
  readonly stream: WatchStream;
  readonly changes: PlainChange[] = [];
  readonly frontiers: Revision[] = [];
  readonly #iterator: AsyncIterator<WatchBatch>;
  readonly #range: KeyRange;
  readonly #prevValue: boolean;
  #last: Revision;

  private constructor(stream: WatchStream, range: KeyRange, after: Revision, prevValue: boolean) {
    this.stream = stream;
    this.#iterator = stream[Symbol.asyncIterator]();
    this.#range = range;
    this.#prevValue = prevValue;
    this.#last = after;
  }

  static async open(
    store: Store,
    after: Revision,
    options: { readonly range?: KeyRange; readonly prevValue?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<Watcher> {
    const { range = everything, ...rest } = options;
    const stream = await store.watch(range, { after, ...rest });
    return new Watcher(stream, range, after, options.prevValue === true);
  }

  /**
   * Reads one batch; returns false at the end of the stream. A rejection is handled even when the case fails before it
   * awaits the result.
   */
  pull(): Promise<boolean> {
    return handled(this.#pull());
  }

  async #pull(): Promise<boolean> {
    const before = this.stream.frontier;
    const { done, value } = await this.#iterator.next();
    if (done === true) return false;
    assert.ok(value.frontier >= before, 'the frontier never decreases');
    assert.ok(this.stream.frontier >= value.frontier, 'the frontier of the stream follows its batches');
    const known = this.#last;
    for (const change of value.changes) {
      assert.ok(change.revision > known && change.revision >= this.#last, 'changes ascend');
      assert.ok(isOnlyOne(change, value.changes), 'changes are delivered once each');
      assert.ok(change.revision <= value.frontier, 'no change is beyond the frontier of its batch');
      assert.ok(inRange(this.#range, change.key), `${change.key} is outside the range`);
      assert.equal(change.entry === undefined, change.type === 'delete', 'a delete alone has no entry');
      assert.equal(
        'prev' in change && change.prev !== undefined,
        this.#prevValue && change.type !== 'create',
        `prev of a ${change.type}`,
      );
      if (change.entry !== undefined) {
        assert.equal(change.entry.modRevision, change.revision);
        assert.equal(change.entry.key, change.key);
        assert.equal(change.entry.createRevision === change.revision, change.type === 'create');
      }
      this.#last = change.revision;
      this.changes.push(plainChange(change));
    }
    // Everything up to the frontier is complete: later changes must be above it.
    this.#last = Math.max(this.#last, value.frontier);
    this.frontiers.push(value.frontier);
    return true;
  }

  /** Reads until the frontier has reached `revision`. */
  async until(revision: Revision): Promise<this> {
    const reached = this.stream.advanceTo(revision);
    reached.catch(() => {});
    while (this.stream.frontier < revision) assert.ok(await this.pull(), 'the stream ended');
    await reached;
    return this;
  }

  async close(): Promise<void> {
    await this.stream.close();
  }
}

/** Changes of different keys may share a revision, in one batch. */
function isOnlyOne({ revision, key }: Change, batch: readonly Change[]): boolean {
  return batch.filter((other) => other.revision === revision && other.key === key).length === 1;
}

/** Reads every change in (after, upTo] from a new stream. */
export async function changesBetween(
  store: Store,
  after: Revision,
  upTo: Revision,
  options: { readonly range?: KeyRange; readonly prevValue?: boolean } = {},
): Promise<PlainChange[]> {
  const watcher = await Watcher.open(store, after, { prevValue: true, ...options });
  await watcher.until(upTo);
  await watcher.close();
  return watcher.changes.filter((change) => change.revision <= upTo);
}
