import { addAbortListener, removeAbortListener, StorageError, StorageErrorCode, throwIfAborted } from '@keelson/core';
import { decodeStatus, type Header, type KeyValue } from '../wire/responses.ts';
import type { Endpoint, WatchCall } from './endpoint.ts';
import { mayReadAgain, NotSentError, translateEtcdError, type Verdict, verdictOf } from './etcd-errors.ts';
import type { EtcdMetrics } from './etcd-metrics.ts';
import { type WatchTraits, watchTraits } from './server-version.ts';

export interface CallOptions {
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Part of the error when the call fails. */
  readonly key?: string | undefined;
  /** For what establishes which store this is: neither waits for that nor is checked against it. */
  readonly uninspected?: boolean | undefined;
}

export interface ClusterOptions {
  readonly endpoints: readonly Endpoint[];
  readonly metrics: EtcdMetrics;
  readonly lineage: Lineage;
}

/** A put that etcd has confirmed: as long as its history is the same one, this is what the revision holds. */
export interface KnownPut {
  /** As etcd has it. */
  readonly key: Uint8Array;
  readonly revision: number;
  readonly value: Uint8Array;
}

/** Knows whether an answer can come from the store that was opened. */
export interface Lineage {
  /** The highest revision that any answer has shown. */
  readonly seen: number;
  /** Settles when it is known again which store this is; undefined while it is known. */
  readonly recovery: Promise<void> | undefined;
  /**
   * @param floor what `seen` was when the call was sent; an answer below it comes from the past.
   * @throws StorageError `EpochChanged`
   */
  check(header: Header, floor: number): void;
  /** The newest put that etcd has confirmed to this process, by an answer or by a watch. */
  confirmed(put: KnownPut): void;
  /**
   * The store's record was written by a server.
   * @throws StorageError `EpochChanged` unless it still is the record that is known
   */
  recordWritten(kv: KeyValue): void;
}

const defaultTimeoutMs = 10_000;
/** With other members to try, one that does not take a connection or answer a read is left after this long. */
const connectMs = 1000;
const readAttemptMs = 3000;
const pauseMs = 50;

const empty = Buffer.alloc(0);
/** Answers of these are linearizable; those of others may show the past of a member that lags. */
const kvMethods = '/etcdserverpb.KV/';

/**
 * The members of an etcd cluster as one. Calls go to the member that worked last. Reads are tried again, elsewhere too,
 * until their time is over; a write is tried again only while it is certain that it never left.
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

  /** @throws StorageError with what {@link translateEtcdError} makes of the last failure. */
  read<T extends { readonly header: Header }>(
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    options: CallOptions = {},
  ): Promise<T> {
    return this.#call('read', method, request, decode, options);
  }

  /** @throws StorageError `OutcomeUnknown` when the request may have reached etcd and no answer came back. */
  write<T extends { readonly header: Header }>(
    method: string,
    request: Buffer,
    decode: (answer: Buffer) => T,
    options: CallOptions = {},
  ): Promise<T> {
    return this.#call('write', method, request, decode, options);
  }

  /** Opens a stream at the next member that takes one, and says what its version can do. */
  async watch(): Promise<{ readonly endpoint: Endpoint; readonly call: WatchCall; readonly traits: WatchTraits }> {
    await this.#lineage.recovery;
    const endpoint = this.#endpoint();
    try {
      const connectBy = Date.now() + connectMs;
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

  /** Prefers another member from now on, unless that has happened already. */
  leave(endpoint: Endpoint): void {
    if (this.#endpoints[this.#preferred] === endpoint) this.#preferred = (this.#preferred + 1) % this.#endpoints.length;
  }

  /** Fails reads under way; what is being written goes on until `close`. */
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
    const deadline = Date.now() + timeoutMs;
    let renewed = false;
    for (let attempt = 1; ; attempt++) {
      const endpoint = this.#endpoint();
      try {
        const { recovery, seen } = this.#lineage;
        if (recovery !== undefined && !uninspected) await recovered(recovery, deadline, signal);
        const floor = method.startsWith(kvMethods) ? seen : 0;
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
        if (mayReadAgain(verdict)) this.leave(endpoint);
        if (!this.#again(kind, verdict) || Date.now() + pauseMs >= deadline) {
          done(failure.code);
          throw failure;
        }
        if (attempt % this.#endpoints.length === 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  #again(kind: 'read' | 'write', verdict: Verdict): boolean {
    return kind === 'read' ? mayReadAgain(verdict) : verdict === 'notDone';
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
    const now = Date.now();
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

/** @throws NotSentError when it takes longer than the call may, otherwise the reason why the store cannot be used */
function recovered(recovery: Promise<void>, deadline: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (reason: string) => settle(() => reject(new NotSentError(reason)));
    const abort = () => end('the call was aborted');
    const timer = setTimeout(
      () => end('the store was restored and is not open yet'),
      Math.max(deadline - Date.now(), 1),
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
