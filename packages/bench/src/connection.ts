import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

const headerEnd = Buffer.from('\r\n\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');

/** Address of the server that receives the requests. */
export interface ConnectionTarget {
  /** Host name or address of the server. Default `127.0.0.1`. */
  readonly host?: string;
  readonly port: number;
  /** Options of TLS. Absent: plain HTTP. */
  readonly tls?: ConnectionOptions;
}

/** One keep-alive connection that sends a request and reads its answer, as cheaply as Node can. */
export class Connection {
  readonly #socket: Socket;
  #buffered: Buffer = Buffer.alloc(0);
  #left = -1;
  #chunked = false;
  #status = 0;
  #closed = false;
  #done: (status: number) => void = () => {};

  constructor({ host = '127.0.0.1', port, tls }: ConnectionTarget) {
    const address = { host, port, noDelay: true };
    this.#socket = tls ? connectTls({ ...tls, ...address }).setNoDelay(true) : connect(address);
    this.#socket.on('data', (chunk) => this.#read(chunk));
    this.#socket.on('error', () => this.#end());
    this.#socket.on('close', () => this.#end());
  }

  /** Resolves to the status code, 0 when the connection failed. */
  send(request: string): Promise<number> {
    if (this.#closed) return Promise.resolve(0);
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#socket.write(request);
    });
  }

  get closed(): boolean {
    return this.#closed;
  }

  close(): void {
    this.#socket.destroy();
  }

  #end(): void {
    this.#closed = true;
    this.#done(0);
  }

  #read(chunk: Buffer): void {
    if (this.#left >= 0) {
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

  /** Detects the end of a chunked body without parsing the chunks. */
  #endOfChunks(): void {
    if (!this.#buffered.subarray(-lastChunk.length).equals(lastChunk)) {
      this.#buffered = this.#buffered.subarray(-lastChunk.length);
      return;
    }
    this.#buffered = Buffer.alloc(0);
    this.#chunked = false;
    this.#done(this.#status);
  }
}
