import { type Clock, isStorageError, type Logger, type Revision } from '@keelson/core';
import type { HistoryBound } from './history-bound.ts';
import type { CallOptions, Cluster } from './net/cluster.ts';
import { encodeCompaction, encodePutIfVersion } from './wire/requests.ts';
import { decodeHeader, decodeTxn } from './wire/responses.ts';

export interface CompactorOptions {
  readonly cluster: Cluster;
  readonly bound: HistoryBound;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Record by which the servers of a cluster agree on who compacts; kube-apiserver's is `compact_rev_key`. */
  readonly key: string;
  readonly minAgeMs: number;
  readonly minChanges: number;
}

const shortestIntervalMs = 1000;

/**
 * Lets go of old history as kube-apiserver does: once in an interval every server tries to raise the version of one
 * record; who succeeds compacts to the revision that was current one interval before. So history is never younger than
 * an interval when it goes, however many servers there are, and servers of other software that keep the protocol take
 * part.
 */
export class Compactor {
  readonly #options: CompactorOptions;
  readonly #key: Buffer;
  #version = 0;
  #revision: Revision = 0;
  #cancel: (() => void) | undefined;
  #stopped = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: CompactorOptions) {
    this.#options = options;
    this.#key = Buffer.from(options.key);
  }

  start(): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(Math.max(this.#options.minAgeMs, shortestIntervalMs), () => {
      this.#turn = this.#take()
        .catch((err: unknown) => this.#options.logger.warn('history could not be compacted', { err }))
        .then(() => this.start());
    });
  }

  /** Waits for the turn under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#turn;
  }

  /** Resolves when a turn that has begun is over. */
  settled(): Promise<void> {
    return this.#turn;
  }

  async #take(): Promise<void> {
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
 * @throws StorageError `FutureRevision` (without its revision) for more than there is. Compacting what is compacted is
 * nothing.
 */
export async function compactTo(
  { cluster, bound }: Pick<CompactorOptions, 'cluster' | 'bound'>,
  upTo: Revision,
  options: CallOptions = {},
): Promise<void> {
  try {
    // Repeating it changes nothing, so it is repeated like a read.
    await cluster.read('/etcdserverpb.KV/Compact', encodeCompaction(upTo), decodeHeader, options);
    bound.raise(upTo);
  } catch (error) {
    if (!isStorageError(error, 'Compacted')) throw error;
  }
}
