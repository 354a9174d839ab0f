import type { FileHandle } from 'node:fs/promises';
import { maxLogHeadBytes, parseLogHead } from '@keelson/container-runtime';
import { isBefore } from './log-text.ts';

const blockBytes = 64 * 1024;
const lineEnd = 0x0a;

/** Counts lines of a log from its end, file by file. A line of several entries is one line. */
export class LogTail {
  readonly #sinceMs: number | undefined;
  #missing: number;
  #begun = false;

  /** `sinceMs`: entries before that time (epoch milliseconds) are not counted. */
  constructor(lines: number, sinceMs: number | undefined) {
    this.#missing = lines;
    this.#sinceMs = sinceMs;
  }

  /**
   * Offset at which the lines begin that are still missing; undefined when the file has no more lines than these. Reads
   * blocks from the end.
   */
  async find(file: FileHandle): Promise<number | undefined> {
    const { size } = await file.stat();
    // The head of an entry that begins at the end of a block is in the next one.
    const block = Buffer.allocUnsafe(Math.min(size, blockBytes + maxLogHeadBytes));
    /** Where the entry after the one that is examined begins. */
    let next = size;
    for (let end = size; end > 0; end -= blockBytes) {
      const start = Math.max(0, end - blockBytes);
      const { bytesRead } = await file.read(block, 0, Math.min(block.length, size - start), start);
      const bytes = block.subarray(0, bytesRead);
      for (let before = end - start; before > 0; ) {
        const found = bytes.lastIndexOf(lineEnd, before - 1);
        const at = found + 1;
        before = found;
        // At the end of the block, an entry begins only if the line end before it is in this block.
        if ((found < 0 && start > 0) || start + at >= size) continue;
        if (this.#complete(bytes, at, next - start - 1)) return next;
        next = start + at;
      }
    }
    return undefined;
  }

  /** True when the entry ends the line before the first one that is wanted. */
  #complete(bytes: Buffer, at: number, end: number): boolean {
    const head = parseLogHead(bytes, at, end <= bytes.length ? end : undefined);
    if (head === undefined || isBefore(head, this.#sinceMs)) return false;
    // Text at the end of the log that has no line end yet is a line.
    const endsLine = !head.partial || !this.#begun;
    this.#begun = true;
    if (!endsLine) return false;
    if (this.#missing === 0) return true;
    this.#missing -= 1;
    return false;
  }
}
