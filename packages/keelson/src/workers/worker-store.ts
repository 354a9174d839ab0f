import type { MessagePort } from 'node:worker_threads';
import { StorageError, StorageErrorCode } from '@keelson/core';
import { addAbortListener, removeAbortListener } from '@keelson/core/runtime';
import {
  type Change,
  type Entry,
  type KeyRange,
  type ListChunk,
  LogWatchStream,
  type ReadOptions,
  type Revision,
  type Store,
  type StoreCapabilities,
  throwIfAborted,
  type WatchBatch,
  type WatchStream,
  type WriteOp,
  type WriteResult,
} from '@keelson/core/storage-adapter';
import {
  type CallMethod,
  Inbox,
  Outbox,
  receivedEntry,
  type SentChange,
  type SentError,
  type SentObject,
  type StoreAccess,
  type StoreRequest,
  type StoreResponse,
} from './store-messages.ts';

interface Waiting {
  /** Code of the error with which the call fails when the channel closes. */
  readonly lost: StorageErrorCode;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Signalled {
  readonly signal?: AbortSignal | undefined;
}

/** A distributive `Omit`. */
type WithoutId<R> = R extends { readonly id: number } ? Omit<R, 'id'> : never;

/** The store of the main thread, used by a worker thread: see `SharedStore`. */
export class WorkerStore implements Store {
  readonly capabilities: StoreCapabilities;
  readonly #channel: Channel;
  readonly #revision: BigInt64Array;

  constructor({ port, revision, capabilities }: StoreAccess) {
    this.capabilities = capabilities;
    this.#channel = new Channel(port);
    this.#revision = new BigInt64Array(revision);
  }

  ready(): Promise<void> {
    return this.#call<void>('ready', []);
  }

  identity(): ReturnType<Store['identity']> {
    return this.#call('identity', []);
  }

  /** A write that has been sent is not aborted: stores that one process opens do not interrupt writes. */
  write(op: WriteOp, { signal }: Signalled = {}): Promise<WriteResult> {
    return this.#channel.write(op, signal);
  }

  get(...[key, options = {}]: Parameters<Store['get']>): ReturnType<Store['get']> {
    return this.#call('get', [key], options);
  }

  count(...[range, options = {}]: Parameters<Store['count']>): ReturnType<Store['count']> {
    return this.#call('count', [range], options);
  }

  compact(upTo: Revision): Promise<void> {
    return this.#call('compact', [upTo]);
  }

  compactedRevision(): Promise<Revision> {
    return this.#call('compactedRevision', []);
  }

  async currentRevision({ signal }: ReadOptions = {}): Promise<Revision> {
    this.#channel.assertOpen();
    throwIfAborted(signal);
    return Number(Atomics.load(this.#revision, 0));
  }

  async *list(...[range, options = {}]: Parameters<Store['list']>): AsyncGenerator<ListChunk, void, undefined> {
    const { signal, ...rest } = options;
    const id = await this.#channel.call<number>({ open: 'list', args: [range, rest] }, signal);
    let ended = false;
    try {
      for (;;) {
        const chunk = await this.#channel.call<ListChunk | undefined>({ next: id }, signal);
        ended = chunk === undefined;
        if (chunk === undefined) return;
        yield chunk;
      }
    } finally {
      if (!ended) this.#channel.send({ abort: id });
    }
  }

  async watch(range: KeyRange, { signal, ...options }: Parameters<Store['watch']>[1]): Promise<WatchStream> {
    const id = await this.#channel.call<number>({ open: 'watch', args: [range, options] }, signal);
    return new WorkerWatchStream(this.#channel, id, options.after, signal);
  }

  close(): Promise<void> {
    return this.#channel.close();
  }

  #call<T>(method: CallMethod, args: readonly unknown[], { signal, ...options }: Signalled = {}): Promise<T> {
    return this.#channel.call({ call: method, args: [...args, options] }, signal);
  }
}

/** Requests of a worker and their responses. */
class Channel {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  readonly #outbox: Outbox<StoreRequest>;
  readonly #inbox = new Inbox<StoreResponse>();
  readonly #streams = new Map<number, WorkerWatchStream>();
  #lastId = 0;
  #open = true;
  #idle: (() => void) | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
    this.#outbox = new Outbox(port);
    port.on('message', (post: unknown) => {
      for (const response of this.#inbox.receive(post)) this.#receive(response);
      if (this.#waiting.size === 0) this.#idle?.();
    });
    port.once('close', () => {
      this.#open = false;
      this.#fail();
    });
  }

  /** @throws StorageError `Closed` */
  assertOpen(): void {
    if (!this.#open) throw storeClosed();
  }

  /**
   * The response to a request.
   *
   * @throws StorageError of the store, or `Timeout` when the signal aborted before the call
   */
  async call<T>(request: WithoutId<StoreRequest>, signal?: AbortSignal): Promise<T> {
    this.assertOpen();
    throwIfAborted(signal);
    const id = ++this.#lastId;
    const response = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { lost: StorageErrorCode.Closed, resolve, reject });
    });
    const abort = () => this.send({ abort: id });
    addAbortListener(signal, abort);
    this.#outbox.send({ ...request, id } as StoreRequest);
    try {
      return (await response) as T;
    } finally {
      removeAbortListener(signal, abort);
    }
  }

  /** @throws StorageError of the store, or `OutcomeUnknown` when the channel closes before the response */
  write(op: WriteOp, signal: AbortSignal | undefined): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      this.assertOpen();
      throwIfAborted(signal);
      const id = ++this.#lastId;
      const resolved = resolve as (result: unknown) => void;
      this.#waiting.set(id, { lost: StorageErrorCode.OutcomeUnknown, resolve: resolved, reject });
      const { key, expect } = op;
      if (op.op === 'delete') this.#outbox.send([id, key, expect]);
      // The owner keeps the bytes: in shared memory they are copied once, not once per thread.
      else if (op.ttlMs === undefined) this.#outbox.send([id, key, expect, this.#outbox.bytes(op.value)]);
      else this.#outbox.send([id, key, expect, this.#outbox.bytes(op.value), op.ttlMs]);
    });
  }

  /** Sends a request without a response. */
  send(request: WithoutId<StoreRequest>): void {
    if (this.#open) this.#outbox.send({ ...request, id: 0 } as StoreRequest);
  }

  attach(id: number, stream: WorkerWatchStream): void {
    this.#streams.set(id, stream);
  }

  detach(id: number): void {
    this.#streams.delete(id);
  }

  /** Ends the streams, waits for running calls, and closes the channel. Idempotent. */
  async close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    for (const stream of [...this.#streams.values()]) stream.fail(storeClosed());
    this.#outbox.send({ id: 0, abort: 'reads' });
    while (this.#waiting.size > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    this.#port.close();
  }

  #receive(response: StoreResponse): void {
    if ('watch' in response) {
      const stream = this.#streams.get(response.watch);
      if ('changes' in response)
        stream?.receive({ changes: response.changes.map(this.#change), frontier: response.frontier });
      else stream?.fail(response.error === undefined ? storeClosed() : received(response.error));
      return;
    }
    const isWritten = 'length' in response;
    const id = isWritten ? response[0] : response.id;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (isWritten) waiting?.resolve({ ok: true, revision: response[1], createRevision: response[2] });
    else if ('error' in response) waiting?.reject(received(response.error));
    else waiting?.resolve(this.#result(response.value));
  }

  readonly #entry = ([key, sent]: SentObject): Entry => receivedEntry(this.#inbox, key, sent);

  readonly #change = ([type, revision, key, sent, prev]: SentChange): Change => {
    const entry = sent === 0 ? undefined : receivedEntry(this.#inbox, key, sent);
    if (prev === undefined) return { type, revision, key, entry };
    return { type, revision, key, entry, prev: receivedEntry(this.#inbox, key, prev) };
  };

  /** The result of a call. Entries in the form of messages are converted back. */
  #result(result: unknown): unknown {
    if (typeof result !== 'object' || result === null) return result;
    const { entry, current, entries } = result as {
      readonly [K in 'entry' | 'current']?: SentObject;
    } & { readonly entries?: readonly SentObject[] };
    if (entry !== undefined) return { ...result, entry: this.#entry(entry) };
    if (current !== undefined) return { ...result, current: this.#entry(current) };
    if (entries !== undefined) return { ...result, entries: entries.map(this.#entry) };
    return result;
  }

  #fail(): void {
    for (const stream of [...this.#streams.values()]) stream.fail(storeClosed());
    for (const { lost, reject } of this.#waiting.values())
      reject(lost === StorageErrorCode.Closed ? storeClosed() : new StorageError(lost, 'the store was closed'));
    this.#waiting.clear();
  }
}

/** Number of batches that the main thread may send before the worker has read one. */
const window = 32;

/** A watch of the store. */
class WorkerWatchStream extends LogWatchStream {
  readonly #channel: Channel;
  readonly #id: number;
  readonly #batches: WatchBatch[] = [];
  /** Number of batches that the main thread may still send. */
  #granted = 0;

  constructor(channel: Channel, id: number, after: Revision, signal: AbortSignal | undefined) {
    super(after, signal);
    this.#channel = channel;
    this.#id = id;
    channel.attach(id, this);
  }

  receive(batch: WatchBatch): void {
    this.#granted -= 1;
    this.#batches.push(batch);
    this.pump();
  }

  protected read(): WatchBatch | undefined {
    return this.#batches.shift();
  }

  /** Allows the main thread to send batches only when the consumer waits for one. */
  protected setWaiting(waiting: boolean): void {
    if (!waiting || this.#granted > window / 2) return;
    this.#channel.send({ grant: this.#id, batches: window - this.#granted });
    this.#granted = window;
  }

  protected override requestAdvance(revision: Revision): void {
    this.#channel.send({ advance: this.#id, revision });
  }

  protected release(): void {
    this.#channel.detach(this.#id);
    this.#channel.send({ abort: this.#id });
  }
}

function storeClosed(): StorageError {
  return new StorageError(StorageErrorCode.Closed, 'the store is closed');
}

function received({ code, message, key, revision }: SentError): Error {
  if (code === undefined) return new Error(message);
  return new StorageError(code, message, {
    ...(key === undefined ? {} : { key }),
    ...(revision === undefined ? {} : { revision }),
  });
}
