import { isStorageError } from '@keelson/core';
import type { Entry, ListChunk, Revision, Store, WatchBatch, WatchStream } from '@keelson/core/storage-adapter';
import { type Outbox, type SentError, type StoreRequest, type StoreResponse, sharedBytes } from './store-messages.ts';

/** A call or a stream of a worker. */
interface Running {
  abort(): void;
  readonly isWrite?: boolean;
  /** Of a list. */
  readonly next?: () => Promise<unknown>;
  /** Of a watch. */
  readonly stream?: SentStream;
}

/** Performs the requests of one worker on a store. */
export class StoreService {
  readonly #store: Store;
  readonly #outbox: Outbox<StoreResponse>;
  readonly #running = new Map<number, Running>();

  constructor(store: Store, outbox: Outbox<StoreResponse>) {
    this.#store = store;
    this.#outbox = outbox;
  }

  perform(request: StoreRequest): void {
    if ('call' in request) this.#answer(request.id, this.#call(request));
    else if ('open' in request) this.#answer(request.id, this.#open(request));
    else if ('next' in request)
      this.#answer(request.id, this.#running.get(request.next)?.next?.() ?? Promise.resolve(undefined));
    else if ('grant' in request) this.#running.get(request.grant)?.stream?.grant(request.batches);
    else if ('advance' in request) this.#running.get(request.advance)?.stream?.advanceTo(request.revision);
    else this.abort(request.abort);
  }

  abort(which: number | 'reads'): void {
    const reads = () => [...this.#running.values()].filter(({ isWrite }) => !isWrite);
    for (const running of which === 'reads' ? reads() : [this.#running.get(which)]) running?.abort();
  }

  #answer(id: number, response: Promise<unknown>): void {
    response.then(
      (value) => this.#outbox.send({ id, value }),
      (error: unknown) => this.#outbox.send({ id, error: sentError(error) }),
    );
  }

  async #call({ id, call, args }: Extract<StoreRequest, { readonly call: unknown }>): Promise<unknown> {
    const controller = new AbortController();
    this.#running.set(id, { isWrite: call === 'write', abort: () => controller.abort() });
    try {
      const options = { ...(args.at(-1) as object), signal: controller.signal };
      const method = this.#store[call] as (...args: unknown[]) => Promise<unknown>;
      return shareResult(await method.call(this.#store, ...args.slice(0, -1), options));
    } finally {
      this.#running.delete(id);
    }
  }

  async #open({ id, open, args }: Extract<StoreRequest, { readonly open: unknown }>): Promise<number> {
    const controller = new AbortController();
    const abort = () => controller.abort();
    this.#running.set(id, { abort });
    const [range, options] = args as Parameters<Store['watch']>;
    const signalled = { ...options, signal: controller.signal };
    if (open === 'list') {
      const chunks = this.#store.list(range, signalled)[Symbol.asyncIterator]();
      const end = () => this.#running.delete(id);
      const next = async () => {
        const { done, value } = await chunks.next().catch((error: unknown) => {
          end();
          throw error;
        });
        if (!done) return shareChunk(value);
        end();
        return undefined;
      };
      const abortList = () => {
        end();
        abort();
        chunks.return?.().catch(() => {});
      };
      this.#running.set(id, { next, abort: abortList });
      return id;
    }
    try {
      const stream = new SentStream(id, await this.#store.watch(range, signalled), this.#outbox);
      this.#running.set(id, { stream, abort });
      void stream.ended.then(() => this.#running.delete(id));
      return id;
    } catch (error) {
      this.#running.delete(id);
      throw error;
    }
  }
}

/** A watch whose batches are sent to a worker, as many as the worker has granted. */
class SentStream {
  readonly #id: number;
  readonly #stream: WatchStream;
  readonly #outbox: Outbox<StoreResponse>;
  readonly ended: Promise<void>;
  #granted = 0;
  #more: () => void = () => {};

  constructor(id: number, stream: WatchStream, outbox: Outbox<StoreResponse>) {
    this.#id = id;
    this.#stream = stream;
    this.#outbox = outbox;
    this.ended = this.#run();
  }

  grant(batches: number): void {
    this.#granted += batches;
    this.#more();
  }

  advanceTo(revision: Revision): void {
    // The result is a batch, which a reader waits for; a failure ends the stream.
    this.#stream.advanceTo(revision).then(
      () => this.#outbox.hurry(),
      () => {},
    );
  }

  async #run(): Promise<void> {
    try {
      await this.#allowed();
      for await (const batch of this.#stream) {
        this.#outbox.sendLazily({ watch: this.#id, batch: shareBatch(batch) });
        this.#granted -= 1;
        await this.#allowed();
      }
      this.#outbox.send({ watch: this.#id });
    } catch (error) {
      this.#outbox.send({ watch: this.#id, error: sentError(error) });
    }
  }

  #allowed(): Promise<void> | undefined {
    if (this.#granted > 0) return undefined;
    return new Promise((resolve) => {
      this.#more = resolve;
    });
  }
}

function sentError(error: unknown): SentError {
  const { message } = error as Error;
  if (!isStorageError(error)) return { code: undefined, message, key: undefined, revision: undefined };
  return { code: error.code, message, key: error.key, revision: error.revision };
}

function shareEntry<E extends Entry | undefined>(entry: E): E {
  return entry && { ...entry, value: sharedBytes(entry.value) };
}

function shareChunk(chunk: ListChunk): ListChunk {
  return { ...chunk, entries: chunk.entries.map(shareEntry) };
}

function shareBatch({ changes, frontier }: WatchBatch): WatchBatch {
  return {
    frontier,
    changes: changes.map((change) => ({
      ...change,
      entry: shareEntry(change.entry),
      ...('prev' in change ? { prev: shareEntry(change.prev) } : {}),
    })),
  };
}

function shareResult(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result;
  if ('entry' in result) return { ...result, entry: shareEntry(result.entry as Entry | undefined) };
  if ('current' in result) return { ...result, current: shareEntry(result.current as Entry | undefined) };
  return result;
}
