import { ConnectionError } from './connection-error.ts';

/** Maximum size of a frame of a watch: see docs/reference/api-rules.md#frames-of-a-watch. */
export const maxFrameBytes = 16 * 1024 * 1024;

const newline = 0x0a;
/** Length of the prefix that contains the size of a frame. */
const lengthBytes = 4;

/** A frame that has been received partly. */
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

  /** Returns the buffered bytes followed by `last`, and clears the buffer. */
  take(last: Buffer): Buffer {
    if (this.#bytes === 0) return last;
    const whole = Buffer.concat([...this.#parts, last], this.#bytes + last.length);
    this.#parts = [];
    this.#bytes = 0;
    return whole;
  }
}

/** Splits a stream of bytes into lines. It works on bytes, so that characters may be split between chunks. */
export class LineSplitter {
  readonly #pending: Pending;

  constructor(maxBytes = maxFrameBytes) {
    this.#pending = new Pending(maxBytes);
  }

  /** The lines completed by this chunk, without line ends and empty lines. */
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

  /** Number of bytes of an incomplete line. */
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
  /** Size of the current frame including its prefix; undefined until the prefix is complete. */
  #frameBytes: number | undefined;

  constructor(maxBytes = maxFrameBytes) {
    this.#pending = new Pending(maxBytes);
  }

  /** The frames completed by this chunk, without their prefixes. */
  push(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      const missing = (this.#frameBytes ?? lengthBytes) - this.#pending.bytes;
      if (rest.length < missing) {
        this.#pending.keep(rest);
        break;
      }
      const whole = this.#pending.take(rest.subarray(0, missing));
      rest = rest.subarray(missing);
      if (this.#frameBytes === undefined) {
        const size = whole.readUInt32BE();
        this.#pending.check(size);
        this.#frameBytes = size === 0 ? undefined : lengthBytes + size;
        if (size > 0) this.#pending.keep(whole);
      } else {
        frames.push(whole.subarray(lengthBytes));
        this.#frameBytes = undefined;
      }
    }
    return frames;
  }

  /** Number of bytes of an incomplete frame. */
  get pendingBytes(): number {
    return this.#pending.bytes;
  }
}
