import { type ClientWatchEvent, isStatusError, type KubeObject, type Status, StatusError } from '@keelson/core';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';
import { ConnectionError } from './connection-error.ts';
import type { HttpStream } from './http-transport.ts';
import type { EventReader, WireEvent, WireFormat } from './wire-format.ts';

/** Dependencies of an HTTP watch. */
export interface HttpWatchOptions {
  readonly clock: Clock;
  readonly format: WireFormat;
  readonly open: (signal: AbortSignal) => Promise<HttpStream>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** Applied to every object. */
  readonly reduce?: ((object: KubeObject) => KubeObject) | undefined;
}

/** Time for which the end of a watch is awaited after its timeout. */
const graceMs = 10_000;

/** Converts an event; throws the failure that an ERROR event contains. */
function eventOf<T extends KubeObject>({ type, object }: WireEvent): ClientWatchEvent<T> {
  if (typeof object !== 'object' || object === null)
    throw new ConnectionError('BadAnswer', 'an event of the watch has no object');
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: object as T };
    case 'BOOKMARK':
      return { type, object };
    case 'ERROR':
      throw new StatusError(object as Status);
    default:
      throw new ConnectionError('BadAnswer', `an event of the watch has the type ${JSON.stringify(type)}`);
  }
}

/**
 * The iterator of a watch. The connection is opened by the first `next` and read only as fast as events are consumed.
 * It ends when the server ends the stream, the caller leaves the loop, the signal aborts, or a failure occurs. The end
 * also settles a pending `next`.
 */
export class HttpWatch<T extends KubeObject> implements AsyncIterator<ClientWatchEvent<T>, undefined> {
  readonly #options: HttpWatchOptions;
  readonly #stop = new AbortController();
  #opened: Promise<AsyncIterator<Buffer>> | undefined;
  #stream: HttpStream | undefined;
  #reader: EventReader | undefined;
  #frames: Buffer[] = [];
  #at = 0;
  #cancelTimeout: (() => void) | undefined;
  readonly #onAbort = () => this.#end();

  constructor(options: HttpWatchOptions) {
    this.#options = options;
  }

  async next(): Promise<IteratorResult<ClientWatchEvent<T>, undefined>> {
    try {
      this.#opened ??= this.#open();
      const chunks = await this.#opened;
      while (!this.#stop.signal.aborted) {
        const frame = this.#frames[this.#at++];
        if (frame !== undefined && this.#reader) return { done: false, value: this.#event(this.#reader, frame) };
        if (!(await this.#fill(chunks))) break;
      }
      this.#end();
      return { done: true, value: undefined };
    } catch (error) {
      const ended = this.#stop.signal.aborted;
      const failure = isStatusError(error) ? error : (this.#stream?.answer.failure(error) ?? error);
      this.#end();
      if (ended) return { done: true, value: undefined };
      throw failure;
    }
  }

  async return(): Promise<IteratorResult<ClientWatchEvent<T>, undefined>> {
    this.#end();
    return { done: true, value: undefined };
  }

  async #open(): Promise<AsyncIterator<Buffer>> {
    const { signal, timeoutMs, clock, open } = this.#options;
    if (signal?.aborted) this.#end();
    this.#stop.signal.throwIfAborted();
    addAbortListener(signal, this.#onAbort);
    if (timeoutMs !== undefined && timeoutMs > 0) this.#cancelTimeout = clock.after(timeoutMs + graceMs, this.#onAbort);
    const stream = await open(this.#stop.signal);
    if (this.#stop.signal.aborted) {
      stream.answer.destroy();
      stream.release();
    } else {
      this.#stream = stream;
      this.#reader = this.#options.format.events(stream.answer.response.headers['content-type'] ?? '');
    }
    return (stream.answer.response as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  #event(reader: EventReader, frame: Buffer): ClientWatchEvent<T> {
    const event = eventOf<T>(reader.event(frame));
    const { reduce } = this.#options;
    return reduce === undefined ? event : ({ type: event.type, object: reduce(event.object) } as ClientWatchEvent<T>);
  }

  /** Reads one chunk; false at the end of the stream. */
  async #fill(chunks: AsyncIterator<Buffer>): Promise<boolean> {
    const { done, value } = await chunks.next();
    this.#at = 0;
    this.#frames = done ? [] : (this.#reader?.push(value) ?? []);
    if (!done) return true;
    if (this.#stop.signal.aborted) return false;
    if (this.#stream?.answer.response.complete && this.#reader?.pendingBytes === 0) return false;
    throw new ConnectionError('Interrupted', 'the watch ended within an event');
  }

  #end(): void {
    if (this.#stop.signal.aborted) return;
    removeAbortListener(this.#options.signal, this.#onAbort);
    this.#cancelTimeout?.();
    this.#frames = [];
    this.#stop.abort();
    this.#stream?.answer.destroy();
    this.#stream?.release();
  }
}
