import {
  type ClientWatchEvent,
  isStatusError,
  type KubeObject,
  type Status,
  StatusError,
  type Stored,
} from '@keelson/core';
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
  /** Reduces every received object to the part that the caller wants, such as its metadata. */
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
      return { type, object: object as Stored<T> };
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

/** Maximum size of a frame of a watch: see docs/reference/api-rules.md#frames-of-a-watch. */
export const maxFrameBytes = 16 * 1024 * 1024;

const newline = 0x0a;
/** Length of the prefix that contains the size of a frame. */
const lengthBytes = 4;

/** A frame that has been received partly. */
class Pending {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws ConnectionError when a frame of this size is too long */
  check(size: number): void {
    if (size > this.#maxBytes) {
      throw new ConnectionError('BadAnswer', `an event of the watch is longer than ${this.#maxBytes} bytes`);
    }
  }

  keep(part: Buffer): void {
    this.#parts.push(part);
    this.#bytes += part.length;
  }

  /** Returns the buffered bytes followed by `last`, and clears the buffer. */
  take(last: Buffer): Buffer {
    if (this.#bytes === 0) return last;
    const whole = Buffer.concat([...this.#parts, last], this.#bytes + last.length);
    this.#parts = [];
    this.#bytes = 0;
    return whole;
  }
}

/** Splits a stream of bytes into lines. It works on bytes, so that characters may be split between chunks. */
export class LineSplitter {
  readonly #pending: Pending;

  constructor(maxBytes = maxFrameBytes) {
    this.#pending = new Pending(maxBytes);
  }

  /** The lines completed by this chunk, without line ends and empty lines. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end === -1) break;
      this.#pending.check(this.#pending.bytes + end - start);
      const line = this.#pending.take(chunk.subarray(start, end));
      if (line.length > 0) lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#pending.check(this.#pending.bytes + chunk.length - start);
      this.#pending.keep(chunk.subarray(start));
    }
    return lines;
  }

  /** Number of bytes of an incomplete line. */
  get pendingBytes(): number {
    return this.#pending.bytes;
  }
}

/**
 * Splits a stream into frames with a length prefix of four bytes, big-endian: see
 * docs/reference/api-rules.md#frames-of-a-watch.
 */
export class FrameSplitter {
  readonly #pending: Pending;
  /** Size of the current frame including its prefix; undefined until the prefix is complete. */
  #frameBytes: number | undefined;

  constructor(maxBytes = maxFrameBytes) {
    this.#pending = new Pending(maxBytes);
  }

  /** The frames completed by this chunk, without their prefixes. */
  push(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      const missing = (this.#frameBytes ?? lengthBytes) - this.#pending.bytes;
      if (rest.length < missing) {
        this.#pending.keep(rest);
        break;
      }
      const whole = this.#pending.take(rest.subarray(0, missing));
      rest = rest.subarray(missing);
      if (this.#frameBytes === undefined) {
        const size = whole.readUInt32BE();
        this.#pending.check(size);
        this.#frameBytes = size === 0 ? undefined : lengthBytes + size;
        if (size > 0) this.#pending.keep(whole);
      } else {
        frames.push(whole.subarray(lengthBytes));
        this.#frameBytes = undefined;
      }
    }
    return frames;
  }

  /** Number of bytes of an incomplete frame. */
  get pendingBytes(): number {
    return this.#pending.bytes;
  }
}
