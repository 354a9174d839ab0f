import { StorageError, StorageErrorCode } from '@keelson/core';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import { throwIfAborted } from '@keelson/core/storage-adapter';
import { decodeStatus, type Header, type KeyValue } from '../wire/responses.ts';
import { callClock } from './channel.ts';
import type { Endpoint, WatchCall } from './endpoint.ts';
import { mayRetryRead, NotSentError, translateEtcdError, type Verdict, verdictOf } from './etcd-errors.ts';
import type { EtcdMetrics } from './etcd-metrics.ts';
import { type WatchTraits, watchTraits } from './server-version.ts';

export interface CallOptions {
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Key that the error contains when the call fails. */
  readonly key?: string | undefined;
  /** Set for calls that establish the identity of the store: they neither wait for it nor are checked against it. */
  readonly uninspected?: boolean | undefined;
}

export interface ClusterOptions {
  readonly endpoints: readonly Endpoint[];
  readonly metrics: EtcdMetrics;
  readonly lineage: Lineage;
}

/**
 * A put that etcd has confirmed. A read of the key at `revision` returns `value`, unless the history of etcd was
 * replaced.
 */
export interface ConfirmedPut {
  /** The key as stored in etcd, with the prefix of the store. */
  readonly key: Uint8Array;
  readonly revision: number;
  readonly value: Uint8Array;
}

/** Decides whether an answer can come from the store that was opened. */
export interface Lineage {
  /** The highest revision in any answer. */
  readonly highest: number;
  /** Settles when the identity of the store is established again; undefined while it is established. */
  readonly recovery: Promise<void> | undefined;
  /**
   * @param floor the value of `highest` when the call was sent; an answer below it comes from an older state of etcd
   * @throws StorageError `EpochChanged`
   */
  check(header: Header, floor: number): void;
  /** Reports a put that etcd has confirmed to this process, by an answer or by a watch. */
  confirmed(put: ConfirmedPut): void;
  /**
   * Reports that a server has written the record of the store.
   * @throws StorageError `EpochChanged` unless it is the record of the opened store
   */
  recordWritten(kv: KeyValue): void;
}

const defaultTimeoutMs = 10_000;
/**
 * With several members, time after which a member that does not connect, or does not answer a read, is no longer
 * preferred.
 */
const connectMs = 1000;
const readAttemptMs = 3000;
// Not injected: see `callClock`.
const pauseMs = 50;

const empty = Buffer.alloc(0);
/**
 * Prefix of the gRPC methods whose answers are linearizable. Other methods may answer with the older state of a member
 * that lags.
 */
const kvMethods = '/etcdserverpb.KV/';

/**
 * Represents all members of an etcd cluster. Calls are sent to the member that worked last. Reads are retried, also at
 * other members, until their deadline; a write is retried only when it was certainly not sent.
 */
export class Cluster {
  readonly #endpoints: readonly Endpoint[];
  readonly #metrics: EtcdMetrics;
  readonly #lineage: Lineage;
  #preferred = 0;
  #closed = false;
  #stopping = false;

  constructor({ endpoints, metrics, lineage }: ClusterOptions) {
    this.#endpoints = endpoints;
    this.#metrics = metrics;
    this.#lineage = lineage;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** @throws StorageError the last failure, converted by {@link translateEtcdError} */
  read<T extends { readonly header: Header }>(
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    options: CallOptions = {},
  ): Promise<T> {
    return this.#call('read', method, request, decode, options);
  }

  /** @throws StorageError `OutcomeUnknown` when the request may have reached etcd and no answer arrived */
  write<T extends { readonly header: Header }>(
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    options: CallOptions = {},
  ): Promise<T> {
    return this.#call('write', method, request, decode, options);
  }

  /** Opens a stream at the preferred member, and returns the capabilities of its version. */
  async watch(): Promise<{ readonly endpoint: Endpoint; readonly call: WatchCall; readonly traits: WatchTraits }> {
    await this.#lineage.recovery;
    const endpoint = this.#endpoint();
    try {
      const connectBy = callClock() + connectMs;
      const { version } = await endpoint.unary('/etcdserverpb.Maintenance/Status', empty, decodeStatus, {
        deadline: connectBy + connectMs,
        connectBy,
        read: true,
      });
      return { endpoint, call: await endpoint.watch(connectBy), traits: watchTraits(version) };
    } catch (error) {
      this.leave(endpoint);
      throw error;
    }
  }

  /** Prefers the next member from now on, unless another member is preferred already. */
  leave(endpoint: Endpoint): void {
    if (this.#endpoints[this.#preferred] === endpoint) this.#preferred = (this.#preferred + 1) % this.#endpoints.length;
  }

  /** Fails running reads; running writes continue until `close`. */
  stopReads(): void {
    this.#stopping = true;
    for (const endpoint of this.#endpoints) endpoint.cancelReads();
  }

  close(): void {
    this.#closed = true;
    this.#stopping = true;
    for (const endpoint of this.#endpoints) endpoint.close();
  }

  async #call<T extends { readonly header: Header }>(
    kind: 'read' | 'write',
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    options: CallOptions,
  ): Promise<T> {
    const { signal, key, timeoutMs = defaultTimeoutMs, uninspected = false } = options;
    throwIfAborted(signal);
    const done = this.#metrics.request(method);
    const deadline = callClock() + timeoutMs;
    let renewed = false;
    for (let attempt = 1; ; attempt++) {
      const endpoint = this.#endpoint();
      try {
        const { recovery, highest } = this.#lineage;
        if (recovery !== undefined && !uninspected) await recovered(recovery, deadline, signal);
        const floor = method.startsWith(kvMethods) ? highest : 0;
        const answer = await this.#attempt(endpoint, kind, method, request, decode, { deadline, signal, uninspected });
        if (!uninspected) this.#lineage.check(answer.header, floor);
        done('ok');
        return answer;
      } catch (error) {
        const verdict = verdictOf(error);
        const failure = this.#failure(error, kind, key, signal);
        if (failure === error || this.#stopping || signal?.aborted) {
          done(failure.code);
          throw failure;
        }
        if (verdict === 'token' && !renewed) {
          // The endpoint has dropped the token and authenticates again.
          renewed = true;
          continue;
        }
        if (mayRetryRead(verdict)) this.leave(endpoint);
        if (!this.#mayRetry(kind, verdict) || callClock() + pauseMs >= deadline) {
          done(failure.code);
          throw failure;
        }
        if (attempt % this.#endpoints.length === 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  #mayRetry(kind: 'read' | 'write', verdict: Verdict): boolean {
    return kind === 'read' ? mayRetryRead(verdict) : verdict === 'notDone';
  }

  #attempt<T>(
    endpoint: Endpoint,
    kind: 'read' | 'write',
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    {
      deadline,
      signal,
      uninspected,
    }: { readonly deadline: number; readonly signal: AbortSignal | undefined; readonly uninspected: boolean },
  ): Promise<T> {
    const several = this.#endpoints.length > 1;
    const now = callClock();
    return endpoint.unary(method, request, decode, {
      deadline: several && kind === 'read' ? Math.min(deadline, now + readAttemptMs) : deadline,
      connectBy: several ? Math.min(deadline, now + connectMs) : deadline,
      read: kind === 'read',
      signal,
      uninspected,
    });
  }

  #failure(
    error: unknown,
    kind: 'read' | 'write',
    key: string | undefined,
    signal: AbortSignal | undefined,
  ): StorageError {
    const details = key === undefined ? {} : { key };
    if (this.#stopping && kind === 'read') {
      return new StorageError(StorageErrorCode.Closed, 'the store was closed', details);
    }
    if (error instanceof NotSentError && signal?.aborted) {
      return new StorageError(StorageErrorCode.Timeout, 'the call was aborted', { ...details, cause: signal.reason });
    }
    return translateEtcdError(error, kind, details);
  }

  #endpoint(): Endpoint {
    const endpoint = this.#endpoints[this.#preferred];
    if (endpoint === undefined || this.#closed) throw new StorageError(StorageErrorCode.Closed, 'the store is closed');
    return endpoint;
  }
}

/** @throws NotSentError when the recovery exceeds the deadline of the call, otherwise the error of the recovery */
function recovered(recovery: Promise<void>, deadline: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (reason: string) => settle(() => reject(new NotSentError(reason)));
    const abort = () => end('the call was aborted');
    const timer = setTimeout(
      () => end('the store was restored and is not open yet'),
      Math.max(deadline - callClock(), 1),
    );
    const settle = (action: () => void) => {
      clearTimeout(timer);
      removeAbortListener(signal, abort);
      action();
    };
    addAbortListener(signal, abort);
    recovery.then(
      () => settle(resolve),
      (error: unknown) => settle(() => reject(error)),
    );
  });
}
