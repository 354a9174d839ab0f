import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { LogPosition } from '../state/state-records.ts';

/** The log file that others read. It is only ever appended to. */
export class LogTarget {
  readonly #path: string;
  #file: number;
  #inode: number;
  #size: number;

  /**
   * Opens the file; with the position of an earlier copy, takes back what was written behind it, so that copying can go
   * on from there. The file of the position may have been renamed since, by whoever rotates logs.
   */
  constructor(path: string, from: LogPosition | undefined) {
    this.#path = path;
    ({ file: this.#file, inode: this.#inode, size: this.#size } = open(path));
    if (from === undefined) return;
    if (from.inode === this.#inode && from.size <= this.#size) {
      ftruncateSync(this.#file, from.size);
      this.#size = from.size;
    } else if (from.inode !== this.#inode) takeBack(path, from);
  }

  /** Where the file is now, to be remembered with the offset in the source. */
  get place(): Pick<LogPosition, 'inode' | 'size'> {
    return { inode: this.#inode, size: this.#size };
  }

  /** All of it or, on a disk that is full, nothing. */
  write(bytes: Buffer): void {
    try {
      for (let rest = bytes; rest.length > 0; ) rest = rest.subarray(writeSync(this.#file, rest));
    } catch (error) {
      ftruncateSync(this.#file, this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  /** The file at the path, anew. @throws what the file system says; the old file stays in use then. */
  reopen(): void {
    const opened = open(this.#path);
    closeSync(this.#file);
    ({ file: this.#file, inode: this.#inode, size: this.#size } = opened);
  }

  close(): void {
    closeSync(this.#file);
  }
}

function open(path: string): { file: number; inode: number; size: number } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  const file = openSync(path, 'a', 0o640);
  const { ino: inode, size } = fstatSync(file);
  return { file, inode, size };
}

function takeBack(path: string, { inode, size }: LogPosition): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const stat = statSync(join(folder, name), { throwIfNoEntry: false });
    if (stat?.ino === inode && stat.isFile() && stat.size > size) truncateSync(join(folder, name), size);
  }
}
