import { isStorageError } from '@keelson/core';
import type { Change, Entry, Revision, Store, WatchStream } from '@keelson/core/storage-adapter';
import {
  Inbox,
  type Outbox,
  type SentChange,
  type SentError,
  type SentObject,
  type SentWrite,
  type StoreRequest,
  type StoreResponse,
  sentEntry,
} from './store-messages.ts';

/** A call other than a write, or a stream of a worker. */
interface Running {
  readonly controller: AbortController;
  /** Reads the next chunk of a list. */
  readonly next?: () => Promise<unknown>;
  /** Closes a list. */
  readonly end?: () => void;
  /** The stream of a watch. */
  readonly stream?: SentStream;
}

/** Greatest number of abort controllers that are kept: creating one costs as much as a call to a store in memory. */
const idleControllers = 64;

/** Performs the requests of one worker on a store. */
export class StoreService {
  readonly #store: Store;
  readonly #outbox: Outbox<StoreResponse>;
  readonly #inbox = new Inbox<StoreRequest>();
  readonly #running = new Map<number, Running>();
  /** Controllers of calls that ended without being aborted, for further calls. */
  readonly #controllers: AbortController[] = [];

  constructor(store: Store, outbox: Outbox<StoreResponse>) {
    this.#store = store;
    this.#outbox = outbox;
  }

  receive(post: unknown): void {
    for (const request of this.#inbox.receive(post)) this.#perform(request);
  }

  #perform(request: StoreRequest): void {
    if ('length' in request) this.#write(request);
    else if ('call' in request) this.#answer(request.id, this.#call(request));
    else if ('open' in request) this.#answer(request.id, this.#open(request));
    else if ('next' in request)
      this.#answer(request.id, this.#running.get(request.next)?.next?.() ?? Promise.resolve(undefined));
    else if ('grant' in request) this.#running.get(request.grant)?.stream?.grant(request.batches);
    else if ('advance' in request) this.#running.get(request.advance)?.stream?.advanceTo(request.revision);
    else this.abort(request.abort);
  }

  abort(which: number | 'reads'): void {
    for (const running of which === 'reads' ? [...this.#running.values()] : [this.#running.get(which)]) {
      running?.end?.();
      running?.controller.abort();
    }
  }

  #write([id, key, expect, bytes, ttlMs]: SentWrite): void {
    const value = bytes && this.#inbox.bytes(bytes);
    const ttl = ttlMs === undefined ? {} : { ttlMs };
    this.#store.write(value ? { op: 'put', key, value, expect, ...ttl } : { op: 'delete', key, expect }).then(
      (result) =>
        this.#outbox.send(
          result.ok ? [id, result.revision, result.createRevision] : { id, value: this.#result(result) },
        ),
      (error: unknown) => this.#outbox.send({ id, error: sentError(error) }),
    );
  }

  #answer(id: number, response: Promise<unknown>): void {
    response.then(
      (value) => this.#outbox.send({ id, value }),
      (error: unknown) => this.#outbox.send({ id, error: sentError(error) }),
    );
  }

  async #call({ id, call, args }: Extract<StoreRequest, { readonly call: unknown }>): Promise<unknown> {
    const controller = this.#controllers.pop() ?? new AbortController();
    const { signal } = controller;
    this.#running.set(id, { controller });
    try {
      const given = args.slice(0, -1);
      const method = this.#store[call] as (...args: unknown[]) => Promise<unknown>;
      return this.#result(await method.call(this.#store, ...given, { ...(args.at(-1) as object), signal }));
    } finally {
      this.#running.delete(id);
      if (!signal.aborted && this.#controllers.length < idleControllers) this.#controllers.push(controller);
    }
  }

  async #open({ id, open, args }: Extract<StoreRequest, { readonly open: unknown }>): Promise<number> {
    const controller = new AbortController();
    this.#running.set(id, { controller });
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
        if (!done) return { ...value, entries: value.entries.map((entry) => this.#sent(entry)) };
        end();
        return undefined;
      };
      const close = () => {
        end();
        chunks.return?.().catch(() => {});
      };
      this.#running.set(id, { next, end: close, controller });
      return id;
    }
    try {
      const stream = new SentStream(id, await this.#store.watch(range, signalled), this.#outbox);
      this.#running.set(id, { stream, controller });
      void stream.ended.then(() => this.#running.delete(id));
      return id;
    } catch (error) {
      this.#running.delete(id);
      throw error;
    }
  }

  #sent(entry: Entry): SentObject {
    return [entry.key, sentEntry(this.#outbox, entry)];
  }

  #result(result: unknown): unknown {
    if (typeof result !== 'object' || result === null) return result;
    const { entry, current } = result as { readonly [K in 'entry' | 'current']?: Entry };
    if (entry !== undefined) return { ...result, entry: this.#sent(entry) };
    if (current !== undefined) return { ...result, current: this.#sent(current) };
    return result;
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
    // A reader waits for the batch that the stream delivers, so it is sent without delay. A failure ends the stream.
    this.#stream.advanceTo(revision).then(
      () => this.#outbox.hurry(),
      () => {},
    );
  }

  async #run(): Promise<void> {
    try {
      await this.#allowed();
      for await (const { frontier, changes } of this.#stream) {
        this.#outbox.sendLazily({ watch: this.#id, frontier, changes: changes.map(this.#sent) });
        this.#granted -= 1;
        await this.#allowed();
      }
      this.#outbox.send({ watch: this.#id });
    } catch (error) {
      this.#outbox.send({ watch: this.#id, error: sentError(error) });
    }
  }

  readonly #sent = ({ type, revision, key, entry, prev }: Change): SentChange => {
    const sent = entry === undefined ? 0 : sentEntry(this.#outbox, entry);
    if (prev === undefined) return [type, revision, key, sent];
    return [type, revision, key, sent, sentEntry(this.#outbox, prev)];
  };

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
