import { checkNotCompacted, isStorageError, type Revision, StorageError, StorageErrorCode } from '@keelson/core';
import type { CallOptions, Cluster } from './net/cluster.ts';
import type { StoreLineage } from './store-lineage.ts';
import type { KeySpace } from './wire/key-space.ts';
import { encodeRange, encodeWatchCreate } from './wire/requests.ts';
import { decodeRange } from './wire/responses.ts';

const askMs = 5000;

/**
 * How far etcd's history is compacted. etcd itself is asked, so all servers agree on it, whoever compacted. What was
 * compacted before the store was made took nothing from it and does not count.
 */
export class HistoryBound {
  readonly #cluster: Cluster;
  readonly #keys: KeySpace;
  readonly #lineage: StoreLineage;
  #etcd: Revision = 0;

  constructor(cluster: Cluster, keys: KeySpace, lineage: StoreLineage) {
    this.#cluster = cluster;
    this.#keys = keys;
    this.#lineage = lineage;
  }

  /** The bound as far as this process has learned. */
  get known(): Revision {
    return this.#etcd > this.#lineage.createdAt ? this.#etcd : 0;
  }

  raise(revision: Revision): void {
    if (revision > this.#etcd) this.#etcd = revision;
  }

  /** After the store was replaced. */
  reset(): void {
    this.#etcd = 0;
  }

  /** What etcd is asked for: the store was empty from the beginning until it was made. */
  pin(revision: Revision): Revision {
    checkNotCompacted(revision, this.known);
    return Math.max(revision, this.#lineage.createdAt);
  }

  /** The current bound. */
  async current(): Promise<Revision> {
    try {
      await this.probe(Math.max(this.#etcd, 1), {});
    } catch (error) {
      if (!isStorageError(error, 'Compacted')) throw error;
      await this.#ask();
    }
    return this.known;
  }

  /**
   * The revision of etcd, while showing that `revision` (as from {@link pin}; 0 for none) can be read.
   *
   * @throws StorageError `Compacted` or `FutureRevision`, without their revisions.
   */
  async probe(revision: Revision, options: CallOptions): Promise<Revision> {
    const request = encodeRange({ key: this.#keys.missing, revision, keysOnly: true });
    return (await this.#cluster.read('/etcdserverpb.KV/Range', request, decodeRange, options)).header.revision;
  }

  /** Completes an error of a read at `revision` with the revision it is about. */
  async explain(error: unknown, revision: Revision): Promise<unknown> {
    if (isStorageError(error, 'Compacted')) {
      if (this.known <= revision) await this.#ask();
      return new StorageError(
        StorageErrorCode.Compacted,
        `revision ${revision} is compacted, history begins at ${this.known}`,
        {
          revision: this.known,
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

  /** A watch that starts below the bound is canceled with it: etcd tells it in no other way. It takes up to 100 ms. */
  async #ask(): Promise<void> {
    const { call } = await this.#cluster.watch().catch(() => {
      throw new StorageError(StorageErrorCode.Unavailable, 'etcd cannot be asked for its compacted revision');
    });
    const { missing } = this.#keys;
    try {
      const bound = await new Promise<Revision>((resolve, reject) => {
        const late = setTimeout(() => reject(new Error('no answer')), askMs);
        const settle = (action: () => void) => {
          clearTimeout(late);
          action();
        };
        call.on('data', (frame) => {
          if (frame.canceled) settle(() => resolve(frame.compactRevision));
        });
        call.on('error', (error) => settle(() => reject(error)));
        call.on('end', () => settle(() => reject(new Error('the stream ended'))));
        const start = Math.max(this.#etcd, 1);
        call.write(encodeWatchCreate({ key: missing, end: this.#keys.after(missing), start, prevKv: false }));
      });
      this.raise(bound);
    } catch (cause) {
      throw new StorageError(StorageErrorCode.Unavailable, 'etcd did not tell its compacted revision', { cause });
    } finally {
      call.on('error', () => {});
      call.cancel();
    }
  }
}
