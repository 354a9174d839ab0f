import { isStorageError } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import type { HistoryBound } from './history-bound.ts';
import type { CallOptions, Cluster } from './net/cluster.ts';
import { encodeCompaction, encodePutIfVersion } from './wire/requests.ts';
import { decodeHeader, decodeTxn } from './wire/responses.ts';

export interface CompactorOptions {
  readonly cluster: Cluster;
  readonly bound: HistoryBound;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Key of the record that elects the server that compacts; kube-apiserver uses `compact_rev_key`. */
  readonly key: string;
  readonly minAgeMs: number;
  readonly minChanges: number;
}

const shortestIntervalMs = 1000;

/**
 * Compacts old history with the protocol of kube-apiserver: once per interval every server tries to raise the version
 * of one record; the server that succeeds compacts to the revision that was current one interval before. So history is
 * at least one interval old when it is compacted, whatever the number of servers, and servers of other software that
 * follow the protocol take part.
 */
export class Compactor {
  readonly #options: CompactorOptions;
  readonly #key: Buffer;
  #version = 0;
  #revision: Revision = 0;
  #cancel: (() => void) | undefined;
  #stopped = false;
  #attempt: Promise<void> = Promise.resolve();

  constructor(options: CompactorOptions) {
    this.#options = options;
    this.#key = Buffer.from(options.key);
  }

  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(Math.max(this.#options.minAgeMs, shortestIntervalMs), () => {
      this.#attempt = this.#compact()
        .catch((err: unknown) => this.#options.logger.warn('history could not be compacted', { err }))
        .then(() => this.start());
    });
  }

  /** Waits for a running attempt. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#attempt;
  }

  /** Resolves when no attempt is running. */
  settled(): Promise<void> {
    return this.#attempt;
  }

  async #compact(): Promise<void> {
    const { cluster, minChanges } = this.#options;
    const due = this.#revision;
    const request = encodePutIfVersion(this.#version, this.#key, Buffer.from(String(due)));
    const answer = await cluster.write('/etcdserverpb.KV/Txn', request, decodeTxn);
    this.#revision = answer.header.revision;
    if (!answer.succeeded) {
      this.#version = answer.kv?.version ?? 0;
      return;
    }
    this.#version++;
    const upTo = Math.min(due, answer.header.revision - minChanges);
    if (upTo > 0) await compactTo(this.#options, upTo);
  }
}

/**
 * Compacts the history below a revision. A revision that is already compacted has no effect.
 * @throws StorageError `FutureRevision` when etcd has not reached the revision; the error does not contain the current
 *   revision
 */
export async function compactTo(
  { cluster, bound }: Pick<CompactorOptions, 'cluster' | 'bound'>,
  upTo: Revision,
  options: CallOptions = {},
): Promise<void> {
  try {
    // Compaction is idempotent, so it is retried like a read.
    await cluster.read('/etcdserverpb.KV/Compact', encodeCompaction(upTo), decodeHeader, options);
    bound.raise(upTo);
  } catch (error) {
    if (!isStorageError(error, 'Compacted')) throw error;
  }
}
