import { connect, type Socket } from 'node:net';

const headerEnd = Buffer.from('\r\n\r\n');

/** One keep-alive connection that sends a request and reads its answer, as cheaply as Node can. */
export class Connection {
  readonly #socket: Socket;
  #buffered: Buffer = Buffer.alloc(0);
  #left = -1;
  #chunked = false;
  #status = 0;
  #done: (status: number) => void = () => {};

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true });
    this.#socket.on('data', (chunk) => this.#read(chunk));
    this.#socket.on('error', () => this.#done(0));
    this.#socket.on('close', () => this.#done(0));
  }

  /** Resolves to the status code, 0 when the connection failed. */
  send(request: string): Promise<number> {
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#left >= 0 && !this.#chunked) {
      this.#consume(chunk.length);
      return;
    }
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
    if (this.#chunked) {
      this.#endOfChunks();
      return;
    }
    const end = this.#buffered.indexOf(headerEnd);
    if (end === -1) return;
    const head = this.#buffered.toString('latin1', 0, end).toLowerCase();
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    const rest = this.#buffered.subarray(end + 4);
    this.#chunked = length === undefined && head.includes('transfer-encoding: chunked');
    if (this.#chunked) {
      this.#buffered = rest;
      this.#endOfChunks();
      return;
    }
    this.#buffered = Buffer.alloc(0);
    this.#left = Number(length ?? 0);
    this.#consume(rest.length);
  }

  #consume(bytes: number): void {
    this.#left -= bytes;
    if (this.#left > 0) return;
    this.#left = -1;
    this.#done(this.#status);
  }

  #endOfChunks(): void {
    if (!this.#buffered.subarray(-7).equals(Buffer.from('\r\n0\r\n\r\n'))) {
      this.#buffered = this.#buffered.subarray(-7);
      return;
    }
    this.#buffered = Buffer.alloc(0);
    this.#chunked = false;
    this.#done(this.#status);
  }
}
