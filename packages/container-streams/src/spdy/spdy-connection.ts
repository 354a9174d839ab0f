import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Clock } from '@keelson/core';
import { FrameWriter } from './frame-writer.ts';
import {
  type ControlFrame,
  FrameReader,
  FrameType,
  numberAt,
  numbersFrame,
  ResetReason,
  SpdyProtocolError,
  streamIdMask,
  synReply,
} from './frames.ts';
import { HeaderReader, HeaderWriter, type SpdyHeaders } from './header-blocks.ts';
import { SpdyStream } from './spdy-stream.ts';

/** Of control frames, and of blocks of headers when they are unfolded. */
const maxControlBytes = 16 * 1024;
const maxStreams = 1000;
/** A peer that has been told the end has so long to close its side, for which it may have to read what was sent. */
const lingerMs = 10_000;
const goneAwayOk = 0;
const goneAwayProtocolError = 1;

export interface SpdyOptions {
  readonly socket: Duplex;
  readonly clock: Clock;
  /** Takes a stream that the peer opens. It is refused when this throws. */
  readonly onStream: (stream: SpdyStream) => void;
  /** Called whenever content goes either way; pings are none. */
  readonly onActivity: () => void;
}

/**
 * The server's end of a SPDY/3.1 connection over any duplex stream. The peer opens streams, this end only answers them.
 *
 * There are no windows: the peers at hand (moby/spdystream, in all Kubernetes clients in Go) neither send nor heed
 * WINDOW_UPDATE. When a stream is not read, the connection is not; when the peer does not read, writes to streams wait.
 * A peer that breaks the protocol ends the connection.
 */
export class SpdyConnection {
  /** Resolves when the connection is gone, whoever ended it. */
  readonly closed: Promise<void>;
  readonly #options: SpdyOptions;
  readonly #frames = new FrameReader(maxControlBytes);
  readonly #headers = new HeaderReader(maxControlBytes);
  readonly #writer = new HeaderWriter();
  readonly #out: FrameWriter;
  readonly #streams = new Map<number, SpdyStream>();
  #lastId = 0;
  #pings = 0;

  constructor(options: SpdyOptions) {
    this.#options = options;
    const { socket } = options;
    this.#out = new FrameWriter(socket);
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      const onClose = () => {
        this.#headers.close();
        for (const stream of [...this.#streams.values()]) stream.lost();
        resolve();
      };
      if (socket.destroyed) onClose();
      else socket.once('close', onClose);
    });
    void this.#serve();
  }

  /** Asks for a sign of life, so that a peer that is gone is noticed even while nothing of it is read. */
  ping(): void {
    this.#pings = (this.#pings + 2) & streamIdMask;
    this.#out.control(numbersFrame(FrameType.ping, this.#pings));
  }

  /**
   * Ends all streams, says that it is over when what was written to them has gone out, and waits a moment for the peer
   * to close.
   */
  async close(): Promise<void> {
    const ends = [...this.#streams.values()].map((stream) =>
      finished(stream.end(), { readable: false }).catch(() => {}),
    );
    await Promise.race([Promise.all(ends), this.closed]);
    await this.#leave(goneAwayOk, () => {});
  }

  destroy(): void {
    this.#options.socket.destroy();
  }

  async #serve(): Promise<void> {
    const { socket } = this.#options;
    try {
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        if (!(await this.#take(chunk))) break;
      }
    } catch {
      // The peer went away in the middle.
    }
    socket.destroy();
  }

  /** False when it cannot go on. */
  async #take(chunk: Buffer): Promise<boolean> {
    const { socket, onActivity } = this.#options;
    try {
      for (const frame of this.#frames.read(chunk)) {
        if (frame.kind === 'control') {
          await this.#onControl(frame);
          // Answers to a peer that does not read them would pile up.
          if (socket.writableNeedDrain) await Promise.race([once(socket, 'drain'), this.closed]);
        } else {
          onActivity();
          await this.#streams.get(frame.streamId)?.arrived(frame.content, frame.last);
        }
      }
      return true;
    } catch (error) {
      if (!(error instanceof SpdyProtocolError)) throw error;
      await this.#leave(goneAwayProtocolError, () => socket.destroy());
      return false;
    }
  }

  async #leave(status: number, whenTold: () => void): Promise<void> {
    const { socket, clock } = this.#options;
    this.#goAway(status);
    socket.end(whenTold);
    const cancel = clock.after(lingerMs, () => socket.destroy());
    await this.closed;
    cancel();
  }

  async #onControl({ type, last, content }: ControlFrame): Promise<void> {
    if (type === FrameType.synStream) await this.#onStream(content, last);
    else if (type === FrameType.synReply || type === FrameType.headers) {
      // Read because later blocks refer to earlier ones; what they say has no meaning here.
      const id = numberAt(content, 0) & streamIdMask;
      await this.#headers.read(content.subarray(4));
      if (last) await this.#streams.get(id)?.arrived(Buffer.alloc(0), true);
    } else if (type === FrameType.rstStream) this.#streams.get(numberAt(content, 0) & streamIdMask)?.lost();
    else if (type === FrameType.ping) {
      const id = numberAt(content, 0);
      const isOfPeer = id % 2 === 1;
      if (isOfPeer) this.#out.control(numbersFrame(FrameType.ping, id));
    }
    // Settings and windows are of no use here, the end of new streams neither, and unknown frames are to be passed
    // over.
  }

  async #onStream(content: Buffer, last: boolean): Promise<void> {
    const id = numberAt(content, 0) & streamIdMask;
    const blockAt = 10;
    if (content.length < blockAt) throw new SpdyProtocolError('a control frame is too short');
    const headers = await this.#headers.read(content.subarray(blockAt));
    if (id % 2 === 0 || id <= this.#lastId) throw new SpdyProtocolError(`a stream cannot have the number ${id}`);
    this.#lastId = id;
    this.#options.onActivity();
    if (this.#streams.size >= maxStreams) this.#reset(id, ResetReason.refusedStream);
    else await this.#open(id, headers, last);
  }

  async #open(id: number, headers: SpdyHeaders, last: boolean): Promise<void> {
    const stream = new SpdyStream(id, headers, {
      sendData: (of, chunk, isLast, done) => {
        this.#options.onActivity();
        this.#out.data(of, chunk, isLast, done);
      },
      sendReset: (of) => this.#reset(of, ResetReason.cancel),
      forget: (of) => this.#streams.delete(of),
    });
    this.#streams.set(id, stream);
    // First of all: the peer throws away what comes on a stream that was not answered.
    this.#out.control(synReply(id, this.#writer.write({})));
    try {
      this.#options.onStream(stream);
    } catch {
      stream.destroy();
    }
    if (last) await stream.arrived(Buffer.alloc(0), true);
  }

  #reset(id: number, reason: number): void {
    this.#out.control(numbersFrame(FrameType.rstStream, id, reason));
  }

  #goAway(status: number): void {
    this.#out.control(numbersFrame(FrameType.goAway, this.#lastId, status));
  }
}
