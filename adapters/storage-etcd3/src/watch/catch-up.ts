import type { StorageError } from '@keelson/core';
import type { OrderedRange, Revision, WatchBatch } from '@keelson/core/storage-adapter';
import { batchOf } from './change-ring.ts';
import type { LoggedChange } from './logged-change.ts';
import { ProgressSeeker } from './progress-seeker.ts';
import type { SharedWatchOptions } from './shared-watch.ts';
import { UpstreamWatch } from './upstream-watch.ts';

/** Bounds of the changes that were received and not yet read; beyond them the stream is paused. */
const maxWaitingBytes = 4 * 1024 * 1024;
const maxWaitingChanges = 4000;

/** A watch at etcd for a single watcher, which reads history at its own pace. */
export class CatchUp {
  readonly #upstream: UpstreamWatch;
  readonly #seeker: ProgressSeeker;
  #log: LoggedChange[] = [];
  #bytes = 0;
  #frontier: Revision;
  #taken: Revision;

  constructor(
    { environment, progress, prevKv }: SharedWatchOptions,
    after: Revision,
    onReadable: () => void,
    onFailure: (error: StorageError) => void,
  ) {
    this.#frontier = after;
    this.#taken = after;
    environment.metrics.catchUp();
    this.#upstream = new UpstreamWatch(environment, {
      after,
      prevKv,
      onChanges: (changes, frontier) => {
        this.#log = this.#log.length === 0 ? [...changes] : this.#log.concat(changes);
        for (const change of changes) this.#bytes += change.sizeBytes;
        this.#frontier = frontier;
        if (this.#bytes > maxWaitingBytes || this.#log.length > maxWaitingChanges) this.#upstream.pause();
        onReadable();
      },
      onFailure,
    });
    this.#seeker = new ProgressSeeker(this.#upstream, progress, environment);
  }

  want(revision: Revision): void {
    this.#seeker.want(revision);
  }

  take(range: OrderedRange): WatchBatch | undefined {
    if (this.#taken >= this.#frontier) return undefined;
    const batch = batchOf(this.#log, 0, range, this.#frontier);
    this.#taken = batch.frontier;
    const rest = this.#log.findIndex((change) => change.revision > batch.frontier);
    this.#log = rest === -1 ? [] : this.#log.slice(rest);
    this.#bytes = 0;
    for (const change of this.#log) this.#bytes += change.sizeBytes;
    if (this.#log.length === 0) this.#upstream.resume();
    return batch;
  }

  close(): void {
    this.#seeker.stop();
    this.#upstream.close();
  }
}
