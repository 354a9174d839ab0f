import { isStorageError, type StorageError } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import type { WriteOp, WriteResult } from '@keelson/core/storage-adapter';
import type { Leases } from './leases.ts';
import type { Cluster, Lineage } from './net/cluster.ts';
import { verdictOf } from './net/etcd-errors.ts';
import { entryOf, expiryStamp, type KeySpace } from './wire/key-space.ts';
import { encodeDeleteIf, encodePutIf, encodeRange } from './wire/requests.ts';
import { decodeRange, decodeTxn, type KeyValue } from './wire/responses.ts';

interface WriteOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/**
 * Makes each write one transaction and converts its answer to a result. A write that may have been sent is never sent
 * again.
 */
export class Writer {
  readonly #cluster: Cluster;
  readonly #keys: KeySpace;
  readonly #leases: Leases;
  readonly #clock: Clock;
  readonly #running = new Set<Promise<unknown>>();

  readonly #lineage: Lineage;

  constructor(cluster: Cluster, keys: KeySpace, leases: Leases, clock: Clock, lineage: Lineage) {
    this.#cluster = cluster;
    this.#keys = keys;
    this.#leases = leases;
    this.#clock = clock;
    this.#lineage = lineage;
  }

  write(op: WriteOp, options: WriteOptions): Promise<WriteResult> {
    const running = op.op === 'put' ? this.#put(op, options) : this.#delete(op, options);
    this.#running.add(running);
    const over = () => void this.#running.delete(running);
    running.then(over, over);
    return running;
  }

  /** Resolves when no write is running. */
  async finished(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  async #put(op: WriteOp & { readonly op: 'put' }, options: WriteOptions): Promise<WriteResult> {
    const key = this.#keys.encode(op.key);
    if (op.ttlMs === undefined) {
      const result = await this.#send(op, encodePutIf(op.expect, { key, value: [op.value] }), options);
      if (result.ok) this.#lineage.confirmed({ key, revision: result.revision, value: op.value });
      return result;
    }
    const value = [expiryStamp(this.#clock.now() + op.ttlMs), op.value];
    for (let attempt = 1; ; attempt++) {
      const lease = await this.#leases.for(op.ttlMs, options);
      try {
        return await this.#send(op, encodePutIf(op.expect, { key, value, lease }), options);
      } catch (error) {
        // etcd refused the whole transaction, so that nothing was written.
        const leaseEnded = isStorageError(error) && verdictOf(error.cause) === 'leaseNotFound';
        if (!leaseEnded || attempt === 3) throw error as StorageError;
        this.#leases.forget();
      }
    }
  }

  async #delete(op: WriteOp & { readonly op: 'delete' }, options: WriteOptions): Promise<WriteResult> {
    const key = this.#keys.encode(op.key);
    if (op.expect !== 0) return this.#send(op, encodeDeleteIf(op.expect, key), options);
    // A delete that expects an absent key always fails; the result contains the present entry.
    const call = { key: op.key, ...options };
    const answer = await this.#cluster.read('/etcdserverpb.KV/Range', encodeRange({ key }), decodeRange, call);
    return this.#refused(op, answer.kvs[0], answer.header.revision);
  }

  async #send(op: WriteOp, request: Buffer, options: WriteOptions): Promise<WriteResult> {
    const call = { key: op.key, ...options };
    const { succeeded, header, kv } = await this.#cluster.write('/etcdserverpb.KV/Txn', request, decodeTxn, call);
    if (!succeeded) return this.#refused(op, kv, header.revision);
    return { ok: true, revision: header.revision, createRevision: kv?.createRevision ?? header.revision };
  }

  #refused(op: WriteOp, kv: KeyValue | undefined, revision: number): WriteResult {
    return { ok: false, current: kv === undefined ? undefined : entryOf(op.key, kv, kv.value.length), revision };
  }
}
