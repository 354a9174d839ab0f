import { randomUUID } from 'node:crypto';
import { isStorageError, type Logger, StorageError, StorageErrorCode, type StoreIdentity } from '@keelson/core';
import type { KeySpace } from './key-space.ts';
import type { Cluster, Lineage } from './net/cluster.ts';
import { encodePutIf, encodeRange } from './wire/requests.ts';
import { decodeRange, decodeTxn, type Header, type KeyValue } from './wire/responses.ts';

/** What the store has written down about itself. */
interface StoreRecord extends StoreIdentity {
  /** Of the etcd cluster that held the store when its epoch began. */
  readonly clusterId: string;
}

const openTimeoutMs = 15_000;

/**
 * Which store this is, and whether it still is. A record under the prefix, made once, names the store. Its epoch rises when
 * the record turns up in another etcd cluster (a restored snapshot) or when revisions have gone back (a copied data
 * directory), by whichever server notices first.
 */
export class StoreLineage implements Lineage {
  readonly #keys: KeySpace;
  readonly #logger: Logger;
  readonly #onChange: (error: StorageError) => void;
  #cluster: Cluster | undefined;
  #record: StoreRecord | undefined;
  #createdAt = 0;
  #seen = 0;
  #reopening: Promise<void> | undefined;

  /** `onChange` is called when what is known about the store has become void. */
  constructor(keys: KeySpace, logger: Logger, onChange: (error: StorageError) => void) {
    this.#keys = keys;
    this.#logger = logger;
    this.#onChange = onChange;
  }

  get seen(): number {
    return this.#seen;
  }

  /** Revision at which the store was made; before it, it was empty. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** Reads the record, or makes it. */
  async open(cluster: Cluster): Promise<void> {
    this.#cluster = cluster;
    await this.#open(cluster, 0);
  }

  async identity(): Promise<StoreIdentity> {
    await this.#reopening;
    if (this.#record === undefined) await this.#reopen();
    const { storeId, epoch } = this.#record as unknown as StoreRecord;
    return { storeId, epoch };
  }

  /** Begins another epoch, if nobody else has done so since the record was read. */
  async renew(): Promise<void> {
    const cluster = this.#cluster;
    const before = this.#record;
    if (cluster === undefined || before === undefined) throw notOpen();
    const { identity } = this.#keys;
    const { kvs } = await cluster.read('/etcdserverpb.KV/Range', encodeRange({ key: identity }), decodeRange);
    const kv = kvs[0];
    const found = kv === undefined ? undefined : parseRecord(kv);
    if (kv !== undefined && found !== undefined && found.epoch === before.epoch) {
      const value = Buffer.from(JSON.stringify({ ...found, epoch: found.epoch + 1 } satisfies StoreRecord));
      await cluster.write('/etcdserverpb.KV/Txn', encodePutIf(kv.modRevision, { key: identity, value: [value] }), decodeTxn);
    }
    this.#record = undefined;
    await this.#open(cluster, 0);
  }

  check(header: Header, floor: number): void {
    if (this.#record === undefined) {
      // Being opened, or opened again: whoever relied on what was before has been told.
      if (this.#seen < header.revision) this.#seen = header.revision;
      return;
    }
    const moved = header.clusterId !== this.#record.clusterId;
    if (!moved && header.revision >= floor) {
      if (header.revision > this.#seen) this.#seen = header.revision;
      return;
    }
    const error = new StorageError(
      StorageErrorCode.EpochChanged,
      moved
        ? `etcd answers as cluster ${header.clusterId}, the store was in ${this.#record.clusterId}`
        : `etcd went back from revision ${floor} to ${header.revision}`,
    );
    this.#logger.error('the store was replaced or restored', { err: error });
    this.#reopen().catch((err: unknown) => this.#logger.warn('the store cannot be opened again', { err }));
    this.#onChange(error);
    throw error;
  }

  #reopen(): Promise<void> {
    const floor = this.#seen;
    const cluster = this.#cluster;
    if (cluster === undefined) return Promise.reject(notOpen());
    this.#record = undefined;
    this.#seen = 0;
    this.#reopening ??= this.#open(cluster, floor).finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  async #open(cluster: Cluster, floor: number): Promise<void> {
    const deadline = Date.now() + openTimeoutMs;
    for (;;) {
      const { identity } = this.#keys;
      const timeoutMs = Math.max(deadline - Date.now(), 1);
      const answer = await cluster.read('/etcdserverpb.KV/Range', encodeRange({ key: identity }), decodeRange, { timeoutMs });
      const { header } = answer;
      const kv = answer.kvs[0];
      const old = kv === undefined ? undefined : parseRecord(kv);
      if (kv !== undefined && old?.clusterId === header.clusterId && header.revision >= floor) {
        this.#accept(old, kv.createRevision, header.revision);
        return;
      }
      const record: StoreRecord =
        old === undefined
          ? { storeId: randomUUID(), epoch: 1, clusterId: header.clusterId }
          : { ...old, epoch: old.epoch + 1, clusterId: header.clusterId };
      const request = encodePutIf(kv?.modRevision ?? 0, { key: identity, value: [Buffer.from(JSON.stringify(record))] });
      try {
        const done = await cluster.write('/etcdserverpb.KV/Txn', request, decodeTxn, { timeoutMs });
        if (!done.succeeded) continue;
        this.#accept(record, kv?.createRevision ?? done.header.revision, done.header.revision);
        return;
      } catch (error) {
        // Whether it was done shows when the record is read again.
        if (!isStorageError(error, 'OutcomeUnknown') || Date.now() > deadline) throw error;
      }
    }
  }

  #accept(record: StoreRecord, createdAt: number, revision: number): void {
    this.#record = record;
    this.#createdAt = createdAt;
    this.#seen = Math.max(this.#seen, revision);
  }
}

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
    // Told below.
  }
  throw new StorageError(StorageErrorCode.Corrupt, `the record ${JSON.stringify(kv.key.toString())} names no store`);
}
