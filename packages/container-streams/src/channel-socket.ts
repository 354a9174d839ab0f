import { Writable } from 'node:stream';
import { type RawData, WebSocket } from 'ws';

export interface ChannelSocketOptions {
  readonly socket: WebSocket;
  /** True when each message is text: the number of the channel as a digit, then the content in base64. */
  readonly base64: boolean;
  /** Called whenever content is sent or received. */
  readonly onActivity: () => void;
}

const digitZero = 0x30;
const normalClosure = 1000;

/** Several channels over one WebSocket. Each message starts with the number of its channel. */
export class ChannelSocket {
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
  readonly #options: ChannelSocketOptions;

  constructor(options: ChannelSocketOptions) {
    this.#options = options;
    const { socket } = options;
    // Errors are ignored, because the WebSocket library closes the connection after an error.
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      if (socket.readyState === WebSocket.CLOSED) resolve();
      else socket.once('close', () => resolve());
    });
  }

  /** Calls `receive` with each message. Nothing is read before `resume`. */
  onMessage(receive: (channel: number, content: Buffer) => void): void {
    const { socket, base64, onActivity } = this.#options;
    socket.on('message', (data: RawData) => {
      const message = data as Buffer;
      if (message.length === 0) return;
      onActivity();
      const first = message[0] ?? 0;
      if (base64) receive(first - digitZero, Buffer.from(message.toString('latin1', 1), 'base64'));
      else receive(first, message.subarray(1));
    });
  }

  send(channel: number, content: Buffer, done: (error?: Error | null) => void = () => {}): void {
    const { socket, base64, onActivity } = this.#options;
    onActivity();
    if (base64) socket.send(String.fromCharCode(digitZero + channel) + content.toString('base64'), done);
    else socket.send(Buffer.concat([Buffer.of(channel), content]), done);
  }

  /** Returns a stream that writes to one channel. A write completes when the connection has accepted the data. */
  writer(channel: number): Writable {
    const write = (chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void) =>
      chunk.length === 0 ? done() : this.send(channel, chunk, done);
    const writer = new Writable({ write });
    writer.on('error', () => {});
    void this.closed.then(() => writer.destroy());
    return writer;
  }

  ping(): void {
    this.#options.socket.ping();
  }

  pause(): void {
    this.#options.socket.pause();
  }

  resume(): void {
    this.#options.socket.resume();
  }

  async close(): Promise<void> {
    const { socket } = this.#options;
    // The close frame of the client must be read even if reading was paused.
    socket.resume();
    socket.close(normalClosure);
    await this.closed;
  }
}
