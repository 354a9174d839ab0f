import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Duplex } from 'node:stream';
import type { PinnedTls } from '../connection/cri-connection.ts';
import { controlFrame, dataFrame, type Frame, FrameType, HeaderBlocks, readFrame, uint32 } from './spdy-frames.ts';
import { streamTls } from './stream-tls.ts';

const maxFrameBytes = 32 * 1024;

/** The server responded, but rejected the upgrade to the protocol. */
export class UpgradeRefused extends Error {}

/** Opens a SPDY connection to `url`. @throws UpgradeRefused, Error when the server does not respond */
export function openSpdy(
  url: string,
  protocol: string,
  signal: AbortSignal | undefined,
  tls?: PinnedTls,
): Promise<SpdyConnection> {
  const headers = { Connection: 'Upgrade', Upgrade: 'SPDY/3.1', 'X-Stream-Protocol-Version': protocol };
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, ...streamTls(url, tls), ...(signal && { signal }) };
    const request = url.startsWith('https:') ? httpsRequest(url, options) : httpRequest(url, options);
    request.once('error', reject);
    request.once('response', (response) => {
      response.resume();
      reject(new UpgradeRefused(`the streaming server responded with ${response.statusCode} to the upgrade`));
    });
    request.once('upgrade', (_response, socket, head) => resolve(new SpdyConnection(socket, head)));
    request.end();
  });
}

/** The client's end of a connection with several streams. Only the client opens streams. */
export class SpdyConnection {
  readonly #socket: Duplex;
  readonly #blocks = new HeaderBlocks();
  readonly #streams = new Map<number, SpdyStream>();
  #nextId = 1;
  #rest: Buffer = Buffer.alloc(0);

  constructor(socket: Duplex, head: Buffer) {
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => this.#disconnected());
    socket.on('end', () => socket.destroy());
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    if (head.length > 0) this.#onData(head);
  }

  open(headers: Readonly<Record<string, string>>): SpdyStream {
    const id = this.#nextId;
    this.#nextId += 2;
    const stream = new SpdyStream(id, this.#socket);
    this.#streams.set(id, stream);
    const noAssociation = uint32(0);
    const noPriority = Buffer.alloc(2);
    const content = Buffer.concat([uint32(id), noAssociation, noPriority, this.#blocks.write(headers)]);
    this.#socket.write(controlFrame(FrameType.synStream, content));
    return stream;
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (let read = readFrame(bytes); read !== undefined; read = readFrame(bytes)) {
      bytes = bytes.subarray(read.length);
      this.#onFrame(read.frame);
    }
    this.#rest = bytes;
  }

  #onFrame(frame: Frame): void {
    if (frame.kind === 'data') {
      this.#streams.get(frame.streamId)?.receive(frame.content, frame.last);
      return;
    }
    if (frame.type === FrameType.ping) this.#socket.write(controlFrame(FrameType.ping, frame.content));
    else if (frame.type === FrameType.goAway) this.#socket.end();
    else if (frame.type === FrameType.reset)
      this.#streams.get(frame.content.readUInt32BE(0))?.receive(Buffer.alloc(0), true);
    // In a SYN_REPLY frame, only the flag that ends the stream is relevant; the headers are ignored.
    else if (frame.last) this.#streams.get(frame.content.readUInt32BE(0) & 0x7fffffff)?.receive(Buffer.alloc(0), true);
  }

  #disconnected(): void {
    for (const stream of this.#streams.values()) stream.disconnected();
  }
}

/** One stream of a connection; each direction ends separately. */
export class SpdyStream extends Duplex {
  readonly #id: number;
  readonly #socket: Duplex;
  #ended = false;
  /** When set, the end of the readable side is reported only after this promise has settled. */
  endsAfter: Promise<unknown> | undefined;

  constructor(id: number, socket: Duplex) {
    super({ allowHalfOpen: true });
    this.#id = id;
    this.#socket = socket;
  }

  /** Adds received content to the stream; `last` ends its readable side. Called by the connection. */
  receive(content: Buffer, last: boolean): void {
    if (this.#ended || this.destroyed) return;
    // The server does not use flow control windows, so a full buffer of one stream pauses the whole connection. At the
    // end of a stream the connection is not paused, because no later read would resume it.
    const full = content.length > 0 && !this.push(content);
    if (last) this.#finish();
    else if (full) this.#socket.pause();
  }

  /** Ends the stream. Called by the connection when the connection is closed. */
  disconnected(): void {
    // Data that has already arrived can still be read.
    this.once('end', () => this.destroy());
    this.#finish();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    for (let begin = 0; begin < chunk.length; begin += maxFrameBytes) {
      const part = chunk.subarray(begin, begin + maxFrameBytes);
      const isLast = begin + maxFrameBytes >= chunk.length;
      this.#socket.write(dataFrame(this.#id, part, false), isLast ? done : () => {});
    }
    if (chunk.length === 0) done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.write(dataFrame(this.#id, Buffer.alloc(0), true), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.resume();
    done(error);
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.endsAfter === undefined) this.push(null);
    else void this.endsAfter.then(() => this.push(null));
    this.#socket.resume();
  }
}
