import { ConnectionError } from './connection-error.ts';

/** Maximum size of a frame of a watch: see docs/reference/api-rules.md#frames-of-a-watch. */
export const maxFrameBytes = 16 * 1024 * 1024;

const newline = 0x0a;
/** Bytes of the length before a frame that has one. */
const lengthBytes = 4;

/** A frame of which a part has come. */
class Pending {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** @throws ConnectionError when a frame of this size is too long */
  check(size: number): void {
    if (size > this.#maxBytes) {
      throw new ConnectionError('BadAnswer', `an event of the watch is longer than ${this.#maxBytes} bytes`);
    }
  }

  keep(part: Buffer): void {
    this.#parts.push(part);
    this.#bytes += part.length;
  }

  /** Everything kept, followed by `last`; nothing is kept afterwards. */
  take(last: Buffer): Buffer {
    if (this.#bytes === 0) return last;
    const whole = Buffer.concat([...this.#parts, last], this.#bytes + last.length);
    this.#parts = [];
    this.#bytes = 0;
    return whole;
  }
}

/** Cuts a stream of bytes into lines. Works on bytes, so a character that comes in two chunks stays whole. */
export class LineSplitter {
  readonly #pending: Pending;

  constructor(maxBytes = maxFrameBytes) {
    this.#pending = new Pending(maxBytes);
  }

  /** The lines that this chunk completes, without their ends; empty lines are left out. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end === -1) break;
      this.#pending.check(this.#pending.bytes + end - start);
      const line = this.#pending.take(chunk.subarray(start, end));
      if (line.length > 0) lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#pending.check(this.#pending.bytes + chunk.length - start);
      this.#pending.keep(chunk.subarray(start));
    }
    return lines;
  }

  /** Bytes of a line that has no end yet. */
  get pendingBytes(): number {
    return this.#pending.bytes;
  }
}

/**
 * Splits a stream into frames with a length prefix of four bytes, big-endian: see
 * docs/reference/api-rules.md#frames-of-a-watch.
 */
export class FrameSplitter {
  readonly #pending: Pending;
  /** Of the frame that is coming in, length included; undefined before its length is known. */
  #wanted: number | undefined;

  constructor(maxBytes = maxFrameBytes) {
    this.#pending = new Pending(maxBytes);
  }

  /** The frames that this chunk completes, without their lengths. */
  push(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      const missing = (this.#wanted ?? lengthBytes) - this.#pending.bytes;
      if (rest.length < missing) {
        this.#pending.keep(rest);
        break;
      }
      const whole = this.#pending.take(rest.subarray(0, missing));
      rest = rest.subarray(missing);
      if (this.#wanted === undefined) {
        const size = whole.readUInt32BE();
        this.#pending.check(size);
        this.#wanted = size === 0 ? undefined : lengthBytes + size;
        if (size > 0) this.#pending.keep(whole);
      } else {
        frames.push(whole.subarray(lengthBytes));
        this.#wanted = undefined;
      }
    }
    return frames;
  }

  /** Bytes of a frame that is not complete. */
  get pendingBytes(): number {
    return this.#pending.bytes;
  }
}
