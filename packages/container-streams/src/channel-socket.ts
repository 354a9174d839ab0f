import { Writable } from 'node:stream';
import { type RawData, WebSocket } from 'ws';

export interface ChannelSocketOptions {
  readonly socket: WebSocket;
  /** Messages are text: the number of the channel as a digit, then its content in base64. */
  readonly base64: boolean;
  /** Called whenever content goes either way. */
  readonly onActivity: () => void;
}

const digitZero = 0x30;
const normalClosure = 1000;

/** Several channels over one WebSocket: each message begins with the number of its channel. */
export class ChannelSocket {
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  readonly #options: ChannelSocketOptions;

  constructor(options: ChannelSocketOptions) {
    this.#options = options;
    const { socket } = options;
    // What is wrong with a message ends the connection, which is all there is to do.
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      if (socket.readyState === WebSocket.CLOSED) resolve();
      else socket.once('close', () => resolve());
    });
  }

  /** Calls back with each message. Nothing is read before `resume`. */
  onMessage(take: (channel: number, content: Buffer) => void): void {
    const { socket, base64, onActivity } = this.#options;
    socket.on('message', (data: RawData) => {
      const message = data as Buffer;
      if (message.length === 0) return;
      onActivity();
      const first = message[0] ?? 0;
      if (base64) take(first - digitZero, Buffer.from(message.toString('latin1', 1), 'base64'));
      else take(first, message.subarray(1));
    });
  }

  send(channel: number, content: Buffer, done: (error?: Error | null) => void = () => {}): void {
    const { socket, base64, onActivity } = this.#options;
    onActivity();
    if (base64) socket.send(String.fromCharCode(digitZero + channel) + content.toString('base64'), done);
    else socket.send(Buffer.concat([Buffer.of(channel), content]), done);
  }

  /** What is written goes out on a channel, at the pace of the connection. */
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
    // The caller's answer has to be read, also when nothing else was any more.
    socket.resume();
    socket.close(normalClosure);
    await this.closed;
  }
}
