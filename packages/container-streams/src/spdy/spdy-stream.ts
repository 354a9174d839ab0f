import { Duplex } from 'node:stream';
import type { SpdyHeaders } from './header-blocks.ts';

/** Maximum unread bytes of a stream before reading of the connection pauses. */
const inboxBytes = 64 * 1024;

/** Functions of the connection that a stream uses. */
export interface SpdyCarrier {
  sendData(id: number, content: Buffer, last: boolean, done: (error?: Error | null) => void): void;
  sendReset(id: number): void;
  forget(id: number): void;
}

/**
 * One stream of a connection, opened by the peer. Each direction ends separately. Destroying the stream before both
 * have ended resets it.
 */
export class SpdyStream extends Duplex {
  readonly id: number;
  readonly headers: SpdyHeaders;
  readonly #carrier: SpdyCarrier;
  #peerEnded = false;
  #ownEnded = false;
  #wanted: (() => void)[] = [];

  constructor(id: number, headers: SpdyHeaders, carrier: SpdyCarrier) {
    super({ allowHalfOpen: true, readableHighWaterMark: inboxBytes });
    this.id = id;
    this.headers = headers;
    this.#carrier = carrier;
    // A stream fails when its connection fails. Without this listener, such an error would end the process.
    this.on('error', () => {});
  }

  /** Called by the connection with received content. Resolves when the stream can buffer more. */
  async arrived(content: Buffer, last: boolean): Promise<void> {
    if (this.destroyed || this.#peerEnded) return;
    const full = content.length > 0 && !this.push(content);
    if (last) {
      this.#peerEnded = true;
      this.push(null);
    } else if (full) await new Promise<void>((resolve) => this.#wanted.push(resolve));
  }

  /** Called by the connection when the peer has reset the stream, or the connection is closed. */
  lost(): void {
    this.#peerEnded = true;
    this.#ownEnded = true;
    this.destroy();
  }

  override _read(): void {
    for (const go of this.#wanted.splice(0)) go();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (chunk.length === 0) done();
    else this.#carrier.sendData(this.id, chunk, false, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#ownEnded = true;
    this.#carrier.sendData(this.id, Buffer.alloc(0), true, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#peerEnded || !this.#ownEnded) this.#carrier.sendReset(this.id);
    this.#carrier.forget(this.id);
    this._read();
    done(error);
  }
}
