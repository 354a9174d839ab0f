import { ConnectionError } from './connection-error.ts';

/** Greatest frame of a watch; clients.md 3.3. */
export const maxFrameBytes = 16 * 1024 * 1024;

const newline = 0x0a;

/** Cuts a stream of bytes into lines. Works on bytes, so a character that comes in two chunks stays whole. */
export class LineSplitter {
  readonly #maxBytes: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  constructor(maxBytes = maxFrameBytes) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes, without their ends; empty lines are left out. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end === -1) break;
      const line = this.#complete(chunk.subarray(start, end));
      if (line.length > 0) lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  /** Bytes of a line that has no end yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  #complete(last: Buffer): Buffer {
    this.#check(last.length);
    if (this.#pendingBytes === 0) return last;
    const line = Buffer.concat([...this.#pending, last], this.#pendingBytes + last.length);
    this.#pending = [];
    this.#pendingBytes = 0;
    return line;
  }

  #keep(part: Buffer): void {
    this.#check(part.length);
    this.#pending.push(part);
    this.#pendingBytes += part.length;
  }

  #check(more: number): void {
    if (this.#pendingBytes + more > this.#maxBytes) {
      throw new ConnectionError('BadAnswer', `an event of the watch is longer than ${this.#maxBytes} bytes`);
    }
  }
}
