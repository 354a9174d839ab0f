import { type FileHandle, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { StoreIdentity } from '@keelson/core/storage-adapter';

/**
 * A change as a line. `v` is the value in base64, absent for a delete; `t` is the time of the change, `x` the expiry
 * time of the key, in epoch milliseconds.
 */
export interface ChangeLine {
  readonly r: number;
  readonly k: string;
  readonly c: number;
  readonly v?: string;
  readonly t: number;
  readonly x?: number;
}

/** The first line: the identity of the store, and the revisions at which the following lines begin. */
export interface HeaderLine extends StoreIdentity {
  readonly head: number;
  readonly compacted: number;
}

/** History below `compacted` was compacted. */
export interface CompactLine {
  readonly compacted: number;
}

export type Line = ChangeLine | CompactLine;

/**
 * The append-only file. Only lines that end with a newline are valid; an incomplete last line was never acknowledged.
 */
export class LineFile {
  readonly #path: string;
  #handle: FileHandle | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Reads the file; undefined when it does not exist. */
  async read(): Promise<{ readonly header: HeaderLine; readonly lines: readonly Line[] } | undefined> {
    let text: string;
    try {
      text = await readFile(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    const [header, ...lines] = text.split('\n').slice(0, -1);
    if (header === undefined) return undefined;
    return { header: JSON.parse(header) as HeaderLine, lines: lines.map((line) => JSON.parse(line) as Line) };
  }

  /** Replaces the whole file and opens it. After a crash the old or the new file exists. */
  async rewrite(header: HeaderLine, lines: readonly Line[]): Promise<void> {
    const temporary = `${this.#path}.new`;
    const handle = await open(temporary, 'w', 0o600);
    await handle.writeFile(textOf([header, ...lines]));
    await handle.datasync();
    await rename(temporary, this.#path);
    const directory = await open(dirname(this.#path));
    await directory.sync();
    await directory.close();
    this.#handle = handle;
  }

  /** Resolves when the lines are on the disk. */
  async append(lines: readonly Line[]): Promise<void> {
    await this.#handle?.appendFile(textOf(lines));
    await this.#handle?.datasync();
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }
}

function textOf(lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}
