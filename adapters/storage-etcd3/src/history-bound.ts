import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { checkNotCompacted, type Revision } from '@keelson/core/storage-adapter';
import type { CallOptions, Cluster } from './net/cluster.ts';
import type { StoreLineage } from './store-lineage.ts';
import type { KeySpace } from './wire/key-space.ts';
import { encodeRange, encodeWatchCreate } from './wire/requests.ts';
import { decodeRange } from './wire/responses.ts';

const queryTimeoutMs = 5000;

/**
 * The compacted revision of etcd. It is read from etcd, so that all servers agree on it, whichever program has
 * compacted. Compaction before the creation of the store removed nothing from it and is ignored.
 */
export class HistoryBound {
  readonly #cluster: Cluster;
  readonly #keys: KeySpace;
  readonly #lineage: StoreLineage;
  readonly #clock: Clock;
  #etcd: Revision = 0;

  constructor(cluster: Cluster, keys: KeySpace, lineage: StoreLineage, clock: Clock) {
    this.#cluster = cluster;
    this.#keys = keys;
    this.#lineage = lineage;
    this.#clock = clock;
  }

  /** The compacted revision that this process has observed. */
  get cached(): Revision {
    return this.#etcd > this.#lineage.createdAt ? this.#etcd : 0;
  }

  raise(revision: Revision): void {
    if (revision > this.#etcd) this.#etcd = revision;
  }

  /** Forgets the bound after the store was replaced. */
  reset(): void {
    this.#etcd = 0;
  }

  /** Returns the revision to read at etcd: revisions before the creation of the store show an empty store. */
  pin(revision: Revision): Revision {
    checkNotCompacted(revision, this.cached);
    return Math.max(revision, this.#lineage.createdAt);
  }

  /** Reads the current compacted revision from etcd. */
  async current(): Promise<Revision> {
    try {
      await this.probe(Math.max(this.#etcd, 1), {});
    } catch (error) {
      if (!isStorageError(error, 'Compacted')) throw error;
      await this.#query();
    }
    return this.cached;
  }

  /**
   * Returns the current revision of etcd, and verifies that `revision` (from {@link pin}; 0 for none) can be read.
   * @throws StorageError `Compacted` or `FutureRevision`; the error contains neither the compacted nor the current
   *   revision
   */
  async probe(revision: Revision, options: CallOptions): Promise<Revision> {
    const request = encodeRange({ key: this.#keys.missing, revision, keysOnly: true });
    return (await this.#cluster.read('/etcdserverpb.KV/Range', request, decodeRange, options)).header.revision;
  }

  /** Adds the compacted or the current revision to the error of a read at `revision`. */
  async explain(error: unknown, revision: Revision): Promise<unknown> {
    if (isStorageError(error, 'Compacted')) {
      if (this.cached <= revision) await this.#query();
      return new StorageError(
        StorageErrorCode.Compacted,
        `revision ${revision} is compacted, history begins at ${this.cached}`,
        {
          revision: this.cached,
          cause: error,
        },
      );
    }
    if (isStorageError(error, 'FutureRevision')) {
      const current = await this.probe(0, {});
      return new StorageError(
        StorageErrorCode.FutureRevision,
        `revision ${revision} has not been reached, the store is at ${current}`,
        { revision: current, cause: error },
      );
    }
    return error;
  }

  /**
   * Reads the compacted revision. etcd has no call for it, but within 100 ms cancels a watch that starts below it,
   * with a response that contains it.
   */
  async #query(): Promise<void> {
    const { call } = await this.#cluster.watch().catch(() => {
      throw new StorageError(StorageErrorCode.Unavailable, 'the compacted revision of etcd cannot be read');
    });
    const { missing } = this.#keys;
    try {
      const bound = await new Promise<Revision>((resolve, reject) => {
        const cancelTimeout = this.#clock.after(queryTimeoutMs, () => reject(new Error('no answer')));
        const settle = (action: () => void) => {
          cancelTimeout();
          action();
        };
        call.listen({
          frame: (frame) => {
            if (frame.canceled) settle(() => resolve(frame.compactRevision));
          },
          ended: (error) => settle(() => reject(error ?? new Error('the stream ended'))),
        });
        const start = Math.max(this.#etcd, 1);
        call.write(encodeWatchCreate({ key: missing, end: this.#keys.after(missing), start, prevKv: false }));
      });
      this.raise(bound);
    } catch (cause) {
      throw new StorageError(StorageErrorCode.Unavailable, 'etcd did not report its compacted revision', { cause });
    } finally {
      call.cancel();
    }
  }
}
