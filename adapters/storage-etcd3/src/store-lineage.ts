import { randomUUID } from 'node:crypto';
import { isStorageError, StorageError, StorageErrorCode } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { StoreIdentity } from '@keelson/core/storage-adapter';
import type { Cluster, ConfirmedPut, Lineage } from './net/cluster.ts';
import type { InspectionCall } from './net/endpoint.ts';
import { NotSentError, verdictOf } from './net/etcd-errors.ts';
import { mayHaveBeenAssigned, useUpRevisions } from './pass-over.ts';
import type { KeySpace } from './wire/key-space.ts';
import { encodePutIf, encodeRange } from './wire/requests.ts';
import { decodeRange, decodeTxn, type Header, type KeyValue, type RangeAnswer } from './wire/responses.ts';

/** The record in which the store keeps its identity. */
interface StoreRecord extends StoreIdentity {
  /** Id of the etcd cluster that contained the store when its epoch began. */
  readonly clusterId: string;
}

export interface LineageEvents {
  /** Called when everything that was cached about the store has become void. */
  readonly changed: (error: StorageError) => void;
  /** Compacts the history below a revision, so that no watch resumes in a history that was replaced. */
  readonly compact: (upTo: number) => Promise<void>;
}

const openTimeoutMs = 15_000;
/** Pause between two attempts to open a store again. */
const recoveryPauseMs = 1000;
const rangeMethod = '/etcdserverpb.KV/Range';

/**
 * Establishes the identity of the store and detects its replacement. A record under the prefix, created once, contains
 * the id and the epoch of the store.
 *
 * etcd may be restored from a snapshot while servers run, with the same cluster id. That requires a restart of etcd, so
 * that an inspection of every new connection detects it. The store was replaced or restored when the record or the
 * cluster is another one, when the revision is lower than before, or when a confirmed put is no longer part of the
 * history. Each server that detects this uses up the revisions that may have been assigned before. Unless another
 * server has begun an epoch by then, it compacts the history and begins one. Until then it sends no other call.
 */
export class StoreLineage implements Lineage {
  readonly #keys: KeySpace;
  readonly #logger: Logger;
  readonly #events: LineageEvents;
  readonly #clock: Clock;
  #cluster: Cluster | undefined;
  #record: StoreRecord | undefined;
  #createdAt = 0;
  #highest = 0;
  #lastPut: ConfirmedPut | undefined;
  #recovery: Promise<void> | undefined;

  constructor(keys: KeySpace, logger: Logger, events: LineageEvents, clock: Clock) {
    this.#keys = keys;
    this.#logger = logger;
    this.#events = events;
    this.#clock = clock;
  }

  get highest(): number {
    return this.#highest;
  }

  get recovery(): Promise<void> | undefined {
    return this.#recovery;
  }

  /** Revision at which the store was created; at earlier revisions it was empty. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** Reads the record, or creates it. */
  async open(cluster: Cluster): Promise<void> {
    this.#cluster = cluster;
    await this.#open(cluster, undefined);
  }

  async identity(): Promise<StoreIdentity> {
    await this.#recovery;
    if (this.#record === undefined) throw notOpen();
    const { storeId, epoch } = this.#record;
    return { storeId, epoch };
  }

  /**
   * Raises the revision of the store above a revision that was observed before this process started, and begins another
   * epoch.
   */
  async passOver(seen: number): Promise<void> {
    const cluster = this.#cluster;
    const before = this.#record;
    if (cluster === undefined || before === undefined) throw notOpen();
    this.#highest = Math.max(this.#highest, seen);
    await this.#open(cluster, before);
  }

  confirmed(put: ConfirmedPut): void {
    if (put.revision > (this.#lastPut?.revision ?? 0)) this.#lastPut = put;
  }

  recordWritten(kv: KeyValue): void {
    const record = this.#record;
    const written = parseRecord(kv);
    if (record === undefined || (written.storeId === record.storeId && written.epoch <= record.epoch)) return;
    throw this.#invalidate(`another server has begun epoch ${written.epoch} of store ${written.storeId}`);
  }

  check(header: Header, floor: number): void {
    const record = this.#record;
    // The call was sent before the recovery began.
    if (record === undefined) throw new StorageError(StorageErrorCode.EpochChanged, replaced);
    if (header.clusterId === record.clusterId && header.revision >= floor) {
      if (header.revision > this.#highest) this.#highest = header.revision;
      return;
    }
    throw this.#invalidate(this.#rewound(record, header, floor) ?? replaced);
  }

  /**
   * Inspects a new connection.
   * @throws NotSentError when it leads to another store or to another history than before
   */
  async inspect(call: InspectionCall): Promise<void> {
    if (this.#record === undefined) throw new NotSentError('the store is not open');
    const floor = this.#highest;
    const answer = await call(rangeMethod, encodeRange({ key: this.#keys.identity }), decodeRange);
    const reason = this.#difference(answer, floor) ?? (await this.#missingPut(call));
    if (reason !== undefined) throw new NotSentError(reason, this.#invalidate(reason));
  }

  #difference({ header, kvs }: RangeAnswer, floor: number): string | undefined {
    const record = this.#record;
    // The inspection of another connection has already detected that the store was replaced.
    if (record === undefined) return replaced;
    const rewound = this.#rewound(record, header, floor);
    if (rewound !== undefined) return rewound;
    const [kv] = kvs;
    if (kv === undefined) return 'the record of the store is missing';
    const { storeId, epoch } = parseRecord(kv);
    if (storeId !== record.storeId) return `etcd contains the store ${storeId} instead of ${record.storeId}`;
    return epoch === record.epoch ? undefined : `the store is in epoch ${epoch} instead of ${record.epoch}`;
  }

  #rewound({ clusterId }: StoreRecord, header: Header, floor: number): string | undefined {
    if (header.clusterId !== clusterId)
      return `etcd answers as cluster ${header.clusterId}, the store was in ${clusterId}`;
    return header.revision < floor ? `etcd went back from revision ${floor} to ${header.revision}` : undefined;
  }

  /**
   * Checks that the history still contains the last confirmed put. A comparison of revisions is not sufficient: other
   * servers may have raised a restored etcd above all observed revisions.
   */
  async #missingPut(call: InspectionCall): Promise<string | undefined> {
    const put = this.#lastPut;
    if (put === undefined) return undefined;
    try {
      const { kvs } = await call(rangeMethod, encodeRange({ key: put.key, revision: put.revision }), decodeRange);
      const [kv] = kvs;
      const same = kv?.modRevision === put.revision && kv.value.equals(put.value);
      return same ? undefined : `revision ${put.revision} of etcd no longer contains the put that etcd had confirmed`;
    } catch (error) {
      if (verdictOf(error) === 'compacted') return undefined;
      throw error;
    }
  }

  /** Begins the recovery and returns the error for the affected callers. */
  #invalidate(reason: string): StorageError {
    const error = new StorageError(StorageErrorCode.EpochChanged, reason);
    const before = this.#record;
    if (before === undefined) return error;
    this.#record = undefined;
    this.#lastPut = undefined;
    this.#logger.error('the store was replaced or restored', { err: error });
    this.#events.changed(error);
    this.#recover(before);
    return error;
  }

  #recover(before: StoreRecord, failure?: string): void {
    const cluster = this.#cluster;
    if (cluster === undefined || cluster.closed) return;
    const recovery = this.#open(cluster, before);
    this.#recovery = recovery;
    recovery.then(
      () => {
        this.#recovery = undefined;
      },
      (err: unknown) => {
        if (String(err) !== failure)
          this.#logger.warn('the store could not be opened again, another attempt follows', { err });
        // Until the next attempt succeeds, calls fail with the same error.
        this.#clock.after(recoveryPauseMs, () => this.#recover(before, String(err)));
      },
    );
  }

  /** @param before the previous record; absent when the store is opened for the first time */
  async #open(cluster: Cluster, before?: StoreRecord): Promise<void> {
    const deadline = this.#clock.monotonic() + openTimeoutMs;
    const { identity } = this.#keys;
    for (let compacted = false; ; ) {
      const call = { timeoutMs: Math.max(deadline - this.#clock.monotonic(), 1000), uninspected: true };
      const answer = await cluster.read(rangeMethod, encodeRange({ key: identity }), decodeRange, call);
      const { clusterId, revision } = answer.header;
      const kv = answer.kvs[0];
      const found = kv === undefined ? undefined : parseRecord(kv);
      const same = found !== undefined && found.storeId === before?.storeId;
      const floor = same ? this.#highest : 0;
      const epoch = same ? before.epoch : 0;
      if (kv !== undefined && found?.clusterId === clusterId && revision >= floor && found.epoch > epoch) {
        this.#accept(found, kv.createRevision, revision, same);
        return;
      }
      if (found !== undefined && mayHaveBeenAssigned(revision, floor)) {
        await useUpRevisions({ cluster, keys: this.#keys, logger: this.#logger }, revision, floor);
        // The record is read again: another server may have begun an epoch, whose history must remain.
        continue;
      }
      if (found !== undefined && !compacted) {
        // The history is compacted before the epoch begins, so that no watch of the new epoch resumes at a revision of
        // the old one. An epoch that another server begins now begins after this revision.
        await this.#events.compact(revision);
        compacted = true;
        continue;
      }
      const record: StoreRecord =
        found === undefined
          ? { storeId: randomUUID(), epoch: 1, clusterId }
          : { ...found, epoch: Math.max(found.epoch, epoch) + 1, clusterId };
      const request = encodePutIf(kv?.modRevision ?? 0, {
        key: identity,
        value: [Buffer.from(JSON.stringify(record))],
      });
      try {
        const done = await cluster.write('/etcdserverpb.KV/Txn', request, decodeTxn, call);
        if (!done.succeeded) continue;
        this.#accept(record, kv?.createRevision ?? done.header.revision, done.header.revision, same);
        return;
      } catch (error) {
        // The next iteration reads the record and shows whether the write took effect.
        if (!isStorageError(error, 'OutcomeUnknown') || this.#clock.monotonic() > deadline) throw error;
      }
    }
  }

  #accept(record: StoreRecord, createdAt: number, revision: number, same: boolean): void {
    this.#record = record;
    this.#createdAt = createdAt;
    this.#highest = same ? Math.max(this.#highest, revision) : revision;
  }
}

const replaced = 'the store was replaced or restored';

function notOpen(): StorageError {
  return new StorageError(StorageErrorCode.Unavailable, 'the store is not open yet');
}

function parseRecord(kv: KeyValue): StoreRecord {
  try {
    const { storeId, epoch, clusterId } = JSON.parse(kv.value.toString()) as Partial<StoreRecord>;
    if (typeof storeId === 'string' && Number.isSafeInteger(epoch) && typeof clusterId === 'string') {
      return { storeId, epoch: epoch as number, clusterId };
    }
  } catch {
    // Invalid JSON is reported by the error after this block.
  }
  throw new StorageError(
    StorageErrorCode.Corrupt,
    `the record ${JSON.stringify(kv.key.toString())} does not contain the id of a store`,
  );
}
