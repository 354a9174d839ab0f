import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '@keelson/core/runtime';

/** Changes within this time are reported together. */
const settleMs = 20;

/**
 * Notifies about changes of the files of a directory, or of one file, as far as the operating system reports them.
 * Callers must also poll. A single file is watched through its directory, since editors replace files.
 */
export class PathWatch {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #changed: () => void;
  #watcher: FSWatcher | undefined;
  /** Identity of the watched directory; a recreated directory has another one. */
  #inode: string | undefined;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(path: string, clock: Clock, changed: () => void) {
    this.#path = path;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Starts watching the current directory. Never fails, since the limit of watches may be exhausted. */
  async arm(): Promise<void> {
    const target = await this.#target();
    if (this.#closed || (target?.inode === this.#inode && this.#watcher !== undefined)) return;
    this.#drop();
    if (target === undefined) return;
    try {
      this.#watcher = watch(target.directory, { persistent: false }, (_, name) => {
        if (target.name === undefined || name === null || name === target.name) this.#tell();
      });
      this.#watcher.on('error', () => this.#drop());
      this.#inode = target.inode;
    } catch {
      this.#drop();
    }
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
    this.#drop();
  }

  #drop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#inode = undefined;
  }

  #tell(): void {
    this.#cancel ??= this.#clock.after(settleMs, () => {
      this.#cancel = undefined;
      this.#changed();
    });
  }

  async #target(): Promise<{ directory: string; name: string | undefined; inode: string } | undefined> {
    const found = await stat(this.#path).catch(() => undefined);
    if (found?.isDirectory()) return { directory: this.#path, name: undefined, inode: `${found.dev}:${found.ino}` };
    const directory = dirname(this.#path);
    const parent = await stat(directory).catch(() => undefined);
    return parent?.isDirectory()
      ? { directory, name: basename(this.#path), inode: `${parent.dev}:${parent.ino}` }
      : undefined;
  }
}
