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

/** The log file of a container, to which lines are appended. */
export class LogTarget {
  readonly #path: string;
  #file: number;
  #inode: number;
  #size: number;

  /**
   * Opens the file. With the position of an earlier copy, the file is truncated to the size in the position, so that
   * copying continues there. Log rotation may have renamed the file since.
   */
  constructor(path: string, from: LogPosition | undefined) {
    this.#path = path;
    ({ file: this.#file, inode: this.#inode, size: this.#size } = open(path));
    if (from === undefined) return;
    if (from.inode === this.#inode && from.size <= this.#size) {
      ftruncateSync(this.#file, from.size);
      this.#size = from.size;
    } else if (from.inode !== this.#inode) truncateRenamed(path, from);
  }

  /** Inode and current size of the file, which are saved with the offset in the source. */
  get place(): Pick<LogPosition, 'inode' | 'size'> {
    return { inode: this.#inode, size: this.#size };
  }

  /** Writes all bytes or, when an error such as a full disk occurs, none. */
  write(bytes: Buffer): void {
    try {
      for (let rest = bytes; rest.length > 0; ) rest = rest.subarray(writeSync(this.#file, rest));
    } catch (error) {
      ftruncateSync(this.#file, this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  /** Opens the file at the path again. @throws the error of the file system; the previous file then stays in use */
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

/** Truncates a renamed log file to the saved size. It is in the folder of `path` and identified by its inode. */
function truncateRenamed(path: string, { inode, size }: LogPosition): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const stat = statSync(join(folder, name), { throwIfNoEntry: false });
    if (stat?.ino === inode && stat.isFile() && stat.size > size) truncateSync(join(folder, name), size);
  }
}
