import { randomUUID } from 'node:crypto';
import { isStorageError, type Logger, StorageError, StorageErrorCode, type StoreIdentity } from '@keelson/core';
import type { Cluster, KnownPut, Lineage } from './net/cluster.ts';
import type { Ask } from './net/endpoint.ts';
import { NotSentError, verdictOf } from './net/etcd-errors.ts';
import { useUpRevisions } from './pass-over.ts';
import type { KeySpace } from './wire/key-space.ts';
import { encodePutIf, encodeRange } from './wire/requests.ts';
import { decodeRange, decodeTxn, type Header, type KeyValue, type RangeAnswer } from './wire/responses.ts';

/** What the store has written down about itself. */
interface StoreRecord extends StoreIdentity {
  /** Of the etcd cluster that held the store when its epoch began. */
  readonly clusterId: string;
}

export interface LineageEvents {
  /** What is known about the store has become void. */
  readonly changed: (error: StorageError) => void;
  /** Drops the history below a revision, so that nobody resumes in a history that is gone. */
  readonly compact: (upTo: number) => Promise<void>;
}

const openTimeoutMs = 15_000;
/** A store that could not be opened again is tried again after this pause. */
const recoverAgainMs = 1000;
const rangeMethod = '/etcdserverpb.KV/Range';

/**
 * Which store this is, and whether it still is. A record under the prefix, made once, names the store and its epoch.
 * etcd may be restored from a snapshot while servers run, under the same cluster id: so every new connection is
 * inspected, because etcd has to be started for that. The store was replaced or restored when the record is another one
 * or in another cluster, when revisions have gone back, or when a put that was confirmed is not part of history any
 * more. The server that detects it uses up the revisions that it has seen, drops the history, and begins another epoch,
 * before any other call is sent.
 */
export class StoreLineage implements Lineage {
  readonly #keys: KeySpace;
  readonly #logger: Logger;
  readonly #events: LineageEvents;
  #cluster: Cluster | undefined;
  #record: StoreRecord | undefined;
  #createdAt = 0;
  #seen = 0;
  #lastPut: KnownPut | undefined;
  #recovery: Promise<void> | undefined;

  constructor(keys: KeySpace, logger: Logger, events: LineageEvents) {
    this.#keys = keys;
    this.#logger = logger;
    this.#events = events;
  }

  get seen(): number {
    return this.#seen;
  }

  get recovery(): Promise<void> | undefined {
    return this.#recovery;
  }

  /** Revision at which the store was made; before it, it was empty. */
  get createdAt(): number {
    return this.#createdAt;
  }

  /** Reads the record, or makes it. */
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

  /** Brings the store above revisions that were seen before this process was started, into another epoch. */
  async passOver(seen: number): Promise<void> {
    const cluster = this.#cluster;
    const before = this.#record;
    if (cluster === undefined || before === undefined) throw notOpen();
    this.#seen = Math.max(this.#seen, seen);
    await this.#open(cluster, before);
  }

  confirmed(put: KnownPut): void {
    if (put.revision > (this.#lastPut?.revision ?? 0)) this.#lastPut = put;
  }

  recordWritten(kv: KeyValue): void {
    const record = this.#record;
    const written = parseRecord(kv);
    if (record === undefined || (written.storeId === record.storeId && written.epoch <= record.epoch)) return;
    throw this.#lost(`another server has begun epoch ${written.epoch} of store ${written.storeId}`);
  }

  check(header: Header, floor: number): void {
    const record = this.#record;
    // The question was asked before the recovery began.
    if (record === undefined) throw new StorageError(StorageErrorCode.EpochChanged, replaced);
    if (header.clusterId === record.clusterId && header.revision >= floor) {
      if (header.revision > this.#seen) this.#seen = header.revision;
      return;
    }
    throw this.#lost(this.#rewound(record, header, floor) ?? replaced);
  }

  /**
   * Inspects a new connection.
   * @throws NotSentError when it leads to another store or another history than the one that is known
   */
  async inspect(ask: Ask): Promise<void> {
    if (this.#record === undefined) throw new NotSentError('the store is not open');
    const floor = this.#seen;
    const answer = await ask(rangeMethod, encodeRange({ key: this.#keys.identity }), decodeRange);
    const reason = this.#difference(answer, floor) ?? (await this.#missingPut(ask));
    if (reason !== undefined) throw new NotSentError(reason, this.#lost(reason));
  }

  #difference({ header, kvs }: RangeAnswer, floor: number): string | undefined {
    const record = this.#record;
    // Another connection has shown it already.
    if (record === undefined) return replaced;
    const rewound = this.#rewound(record, header, floor);
    if (rewound !== undefined) return rewound;
    const [kv] = kvs;
    if (kv === undefined) return 'the record of the store is gone';
    const { storeId, epoch } = parseRecord(kv);
    if (storeId !== record.storeId) return `etcd holds the store ${storeId} instead of ${record.storeId}`;
    return epoch === record.epoch ? undefined : `the store is in epoch ${epoch} instead of ${record.epoch}`;
  }

  #rewound({ clusterId }: StoreRecord, header: Header, floor: number): string | undefined {
    if (header.clusterId !== clusterId)
      return `etcd answers as cluster ${header.clusterId}, the store was in ${clusterId}`;
    return header.revision < floor ? `etcd went back from revision ${floor} to ${header.revision}` : undefined;
  }

  /** Others may have brought a restored etcd above all revisions that were seen: then history tells. */
  async #missingPut(ask: Ask): Promise<string | undefined> {
    const put = this.#lastPut;
    if (put === undefined) return undefined;
    try {
      const { kvs } = await ask(rangeMethod, encodeRange({ key: put.key, revision: put.revision }), decodeRange);
      const [kv] = kvs;
      const same = kv?.modRevision === put.revision && kv.value.equals(put.value);
      return same ? undefined : `revision ${put.revision} is another one in the history of etcd than it was before`;
    } catch (error) {
      if (verdictOf(error) === 'compacted') return undefined;
      throw error;
    }
  }

  /** Begins the recovery; returns what the callers concerned are to be given. */
  #lost(reason: string): StorageError {
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
        if (String(err) !== failure) this.#logger.warn('the store cannot be opened again, it is tried again', { err });
        // Until then calls fail for the same reason.
        setTimeout(() => this.#recover(before, String(err)), recoverAgainMs).unref();
      },
    );
  }

  /** @param before the record that was known until now; absent when the store is opened for the first time */
  async #open(cluster: Cluster, before?: StoreRecord): Promise<void> {
    const deadline = Date.now() + openTimeoutMs;
    const { identity } = this.#keys;
    for (let passedOver = false; ; ) {
      const call = { timeoutMs: Math.max(deadline - Date.now(), 1000), uninspected: true };
      const answer = await cluster.read(rangeMethod, encodeRange({ key: identity }), decodeRange, call);
      const { clusterId, revision } = answer.header;
      const kv = answer.kvs[0];
      const found = kv === undefined ? undefined : parseRecord(kv);
      const same = found !== undefined && found.storeId === before?.storeId;
      const floor = same ? this.#seen : 0;
      const epoch = same ? before.epoch : 0;
      if (kv !== undefined && found?.clusterId === clusterId && revision >= floor && found.epoch > epoch) {
        this.#accept(found, kv.createRevision, revision, same);
        return;
      }
      if (found !== undefined && !passedOver) {
        // First, so that no server finds the new epoch while revisions of the old one can still be resumed.
        const reached = await useUpRevisions({ cluster, keys: this.#keys, logger: this.#logger }, revision, floor);
        await this.#events.compact(reached);
        passedOver = true;
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
        // Whether it was done shows when the record is read again.
        if (!isStorageError(error, 'OutcomeUnknown') || Date.now() > deadline) throw error;
      }
    }
  }

  #accept(record: StoreRecord, createdAt: number, revision: number, same: boolean): void {
    this.#record = record;
    this.#createdAt = createdAt;
    this.#seen = same ? Math.max(this.#seen, revision) : revision;
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
    // Reported below.
  }
  throw new StorageError(StorageErrorCode.Corrupt, `the record ${JSON.stringify(kv.key.toString())} names no store`);
}
