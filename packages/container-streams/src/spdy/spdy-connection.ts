import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Clock } from '@keelson/core/runtime';
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

/** Maximum bytes of control frames, and of decompressed header blocks. */
const maxControlBytes = 16 * 1024;
const maxStreams = 1000;
/** Maximum time for the peer to read the remaining data and close its side after the end. */
const lingerMs = 10_000;
const goneAwayOk = 0;
const goneAwayProtocolError = 1;

export interface SpdyOptions {
  readonly socket: Duplex;
  readonly clock: Clock;
  /** Called for each stream that the peer opens. An exception rejects the stream. */
  readonly onStream: (stream: SpdyStream) => void;
  /** Called whenever content is sent or received; not for pings. */
  readonly onActivity: () => void;
}

/**
 * The server side of a SPDY/3.1 connection over a duplex stream. Only the peer opens streams.
 *
 * Flow control windows are not implemented, because moby/spdystream, which all Kubernetes clients in Go use, neither
 * sends nor evaluates WINDOW_UPDATE. While a stream is not read, the connection is not read; while the peer does not
 * read, writes to streams wait. A protocol error of the peer ends the connection.
 */
export class SpdyConnection {
  /** Resolves when the connection is closed, by either side. */
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

  /** Sends a ping, so that a dead connection is detected while nothing is read. */
  ping(): void {
    this.#pings = (this.#pings + 2) & streamIdMask;
    this.#out.control(numbersFrame(FrameType.ping, this.#pings));
  }

  /**
   * Ends all streams, sends GOAWAY after the content that was written to them, and waits up to {@link lingerMs} for the
   * peer to close.
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
        if (!(await this.#receive(chunk))) break;
      }
    } catch {
      // The peer has disconnected.
    }
    socket.destroy();
  }

  /** Processes a chunk; false when the connection cannot continue. */
  async #receive(chunk: Buffer): Promise<boolean> {
    const { socket, onActivity } = this.#options;
    try {
      for (const frame of this.#frames.read(chunk)) {
        if (frame.kind === 'control') {
          await this.#onControl(frame);
          // Answers must not accumulate for a peer that does not read them.
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
      // The block must be decompressed because later blocks refer to it. Its content is not used.
      const id = numberAt(content, 0) & streamIdMask;
      await this.#headers.read(content.subarray(4));
      if (last) await this.#streams.get(id)?.arrived(Buffer.alloc(0), true);
    } else if (type === FrameType.rstStream) this.#streams.get(numberAt(content, 0) & streamIdMask)?.lost();
    else if (type === FrameType.ping) {
      const id = numberAt(content, 0);
      const isOfPeer = id % 2 === 1;
      if (isOfPeer) this.#out.control(numbersFrame(FrameType.ping, id));
    }
    // SETTINGS, WINDOW_UPDATE and GOAWAY are not used. Unknown frames must be ignored.
  }

  async #onStream(content: Buffer, last: boolean): Promise<void> {
    const id = numberAt(content, 0) & streamIdMask;
    const blockAt = 10;
    if (content.length < blockAt) throw new SpdyProtocolError('a control frame is too short');
    const headers = await this.#headers.read(content.subarray(blockAt));
    if (id % 2 === 0 || id <= this.#lastId) throw new SpdyProtocolError(`invalid stream id ${id}`);
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
    // SYN_REPLY is sent before any data, because the peer discards data of a stream that it received no reply for.
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
