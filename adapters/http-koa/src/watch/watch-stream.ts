import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { isStorageError } from '@keelson/core';
import {
  type EventRepresentation,
  type ResourceWatch,
  type WatchEvent,
  type WatchForm,
  watchErrorStatus,
  withListBlueprint,
} from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Exchange } from '../exchange/exchange.ts';
import type { EventTally, HttpMetrics } from '../exchange/metrics.ts';
import type { JoinedFrames, Pump, WatchScheduler } from './watch-scheduler.ts';

/** Number of events read from the watch at once. */
const batchEvents = 64;
/** Number of batches sent before other watchers are served. */
const batchesPerTurn = 4;
/** Timeout for the last bytes of an ended watch in milliseconds; then the connection is destroyed. */
const lingerMs = 10_000;

export interface WatchStreamOptions {
  readonly clock: Clock;
  readonly scheduler: WatchScheduler;
  readonly metrics: HttpMetrics;
  /** The stream ends cleanly after this time. */
  readonly timeoutMs: number;
  /**
   * Encodes an empty list of a revision, for the bookmark that ends the initial events; undefined when the watch has no
   * initial events.
   */
  readonly emptyList: ((revision: number) => Buffer) | undefined;
  /** Interval of bookmarks; another one is sent at the end. Undefined when the client did not allow bookmarks. */
  readonly bookmarkIntervalMs: number | undefined;
}

/**
 * The stream of one open watch. It reads events only while the connection accepts data, so a slow client costs no
 * more memory than its position in the history.
 *
 * ```
 * open --timeout or drain()--> ending (readable events, a bookmark) --------> ended (final chunk)
 *   |--- watch fails --------> ERROR event ---------------------------------> ended
 *   '--- client closed ----------------------------------------------------> ended
 * ```
 */
export class WatchStream implements Pump {
  readonly #exchange: Exchange;
  readonly #output: Writable;
  readonly #watch: ResourceWatch;
  readonly #form: WatchForm;
  readonly #options: WatchStreamOptions;
  readonly #sink: FrameSink;
  readonly #representation: EventRepresentation;
  /** Fields of `options` copied here: sending to thousands of watchers is bound by memory access. */
  readonly #scheduler: WatchScheduler;
  readonly #tally: EventTally;
  /** Bytes of the body sent so far. */
  #sent = 0;
  readonly #ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #first: EventRepresentation | undefined;
  #emptyList: WatchStreamOptions['emptyList'];
  #state: 'open' | 'ending' | 'ended' = 'open';
  #blocked = false;
  #cancelTimers: (() => void)[] = [];

  /** @param output the response, whose headers have been flushed (`flushHeaders`), or a stream of messages */
  constructor(
    exchange: Exchange,
    output: Writable,
    watch: ResourceWatch,
    form: WatchForm,
    options: WatchStreamOptions,
  ) {
    this.#exchange = exchange;
    this.#output = output;
    this.#watch = watch;
    this.#form = form;
    this.#options = options;
    this.#emptyList = options.emptyList;
    this.#scheduler = options.scheduler;
    this.#tally = options.metrics.eventTally(exchange.metricsResource);
    this.#sink = openFrameSink(output);
    this.#representation = this.#sink.chunked ? form.chunked : form.plain;
    this.#first = this.#sink.chunked ? form.first?.chunked : form.first?.plain;
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  /** Sends events until the stream ends for any reason. */
  run(): Promise<void> {
    const { clock, timeoutMs, bookmarkIntervalMs } = this.#options;
    this.#output.once('close', () => this.#close());
    if (this.#output.destroyed || this.#output.closed) this.#close();
    this.#later(clock, timeoutMs, () => this.end());
    if (bookmarkIntervalMs !== undefined) this.#bookmarkEvery(bookmarkIntervalMs);
    this.pump();
    return this.#ended;
  }

  /** Ends the stream cleanly: readable events, a bookmark when allowed, the final chunk. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    if (this.#blocked) {
      this.#finish();
      return;
    }
    if (this.#options.bookmarkIntervalMs !== undefined) this.#watch.requestBookmark();
    this.pump();
    // Later events are delivered to the next watch of this client.
    this.#finish();
  }

  pump(): void {
    if (this.#state === 'ended' || this.#blocked) return;
    try {
      for (let batch = 0; ; batch++) {
        const events = this.#watch.read(batchEvents);
        if (events.length > 0 && !this.#send(events)) {
          this.#blocked = true;
          this.#sink.onDrain(this.#drained);
          return;
        }
        // A batch that is not full means that the watch has no more events now; `onReadable` reports the next ones.
        if (events.length === 0 || (events.length < batchEvents && this.#state === 'open')) {
          if (this.#state === 'open') this.#watch.onReadable(this.#becameReadable);
          return;
        }
        if (batch >= batchesPerTurn && this.#state === 'open') {
          this.#scheduler.addNow(this);
          return;
        }
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  readonly #becameReadable = (): void => {
    if (this.#state === 'open') this.#scheduler.add(this);
  };

  readonly #drained = (): void => {
    this.#blocked = false;
    if (this.#state === 'open') this.#scheduler.addNow(this);
  };

  #send(events: readonly WatchEvent[]): boolean {
    this.#tally.events += events.length;
    let open = true;
    let rest = this.#emptyList === undefined ? events : this.#withBlueprint(events, this.#emptyList);
    if (this.#first !== undefined && events[0] !== undefined) {
      open = this.#write(this.#scheduler.joiner.join([events[0]], this.#first));
      this.#first = undefined;
      rest = events.slice(1);
      if (rest.length === 0) return open;
    }
    return this.#write(this.#scheduler.joiner.join(rest, this.#representation));
  }

  #withBlueprint(events: readonly WatchEvent[], emptyList: (revision: number) => Buffer): readonly WatchEvent[] {
    const index = events.findIndex(({ initialEventsEnd }) => initialEventsEnd);
    const end = events[index];
    if (end === undefined) return events;
    this.#emptyList = undefined;
    return events.with(index, withListBlueprint(end, emptyList(end.object.revision)));
  }

  #write({ buffers, bytes }: JoinedFrames): boolean {
    this.#sent += bytes;
    return this.#sink.write(buffers);
  }

  /** The watch has failed: sends the cause to the client if the client can use it, and ends the stream. */
  #fail(error: unknown): void {
    if (this.#state === 'ended') return;
    // `SlowConsumer` and `Closed` are not reported as ERROR events: after the end of a stream a client resumes from its
    // last event, but after an ERROR event it would list again.
    if (!isStorageError(error, 'SlowConsumer') && !isStorageError(error, 'Closed')) {
      // See docs/reference/api-rules.md#end-of-a-watch.
      const { apiGroup: group, resource } = this.#exchange.attributes;
      this.#output.write(this.#form.errorFrame(watchErrorStatus(error, { group, resource })));
    }
    this.#finish();
  }

  #finish(): void {
    if (this.#state === 'ended') return;
    const output = this.#output;
    this.#close();
    output.end();
    if (output.writableFinished) return;
    const cancel = this.#options.clock.after(lingerMs, () => output.destroy());
    output.once('close', cancel);
    output.once('finish', cancel);
  }

  /** Releases everything; safe to call in any state. */
  #close(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#exchange.sentBytes += this.#sent;
    for (const cancel of this.#cancelTimers.splice(0)) cancel();
    this.#watch.close();
    this.#resolveEnded();
  }

  #bookmarkEvery(intervalMs: number): void {
    this.#later(this.#options.clock, intervalMs, () => {
      if (this.#state !== 'open') return;
      this.#watch.requestBookmark();
      this.#bookmarkEvery(intervalMs);
    });
  }

  #later(clock: Clock, ms: number, callback: () => void): void {
    const cancel = clock.after(ms, () => {
      this.#cancelTimers = this.#cancelTimers.filter((other) => other !== cancel);
      callback();
    });
    this.#cancelTimers.push(cancel);
  }
}

/** Receives the frames of a watch after its headers have been sent. */
export interface FrameSink {
  /** True when frames must contain the chunk header of HTTP/1.1. */
  readonly chunked: boolean;
  /** Returns false when the receiver is behind; the caller then waits for `onDrain`. */
  write(frames: readonly Buffer[]): boolean;
  onDrain(callback: () => void): void;
}

/** Writes directly to the socket: `ServerResponse` would create a chunk header and three writes for each frame. */
class SocketSink implements FrameSink {
  readonly chunked = true;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(frames: readonly Buffer[]): boolean {
    const first = frames[0];
    if (frames.length === 1 && first !== undefined) return this.#socket.write(first);
    let open = true;
    this.#socket.cork();
    for (const frame of frames) open = this.#socket.write(frame);
    this.#socket.uncork();
    return open;
  }

  onDrain(callback: () => void): void {
    this.#socket.once('drain', callback);
  }
}

/**
 * Writes through the stream: WebSockets, HTTP/2, HTTP/1.0 and responses that are queued behind others on their
 * connection.
 */
class StreamSink implements FrameSink {
  readonly chunked = false;
  readonly #output: Writable;

  constructor(output: Writable) {
    this.#output = output;
  }

  write(frames: readonly Buffer[]): boolean {
    let open = true;
    for (const frame of frames) open = this.#output.write(frame);
    return open;
  }

  onDrain(callback: () => void): void {
    this.#output.once('drain', callback);
  }
}

/**
 * Chooses the sink for a response whose headers have just been flushed. The socket itself is used only while it carries
 * this response alone: HTTP/1.1 with chunked coding and no queued bytes of the response.
 */
export function openFrameSink(output: Writable): FrameSink {
  const http1 = output as ServerResponse;
  const { socket } = http1;
  if (
    socket !== null &&
    socket !== undefined &&
    http1.chunkedEncoding === true &&
    http1.req.httpVersionMajor === 1 &&
    http1.headersSent &&
    http1.writableLength === socket.writableLength
  ) {
    return new SocketSink(socket);
  }
  return new StreamSink(output);
}
