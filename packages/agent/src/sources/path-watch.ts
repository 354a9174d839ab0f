import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Clock } from '@keelson/core';

/** Changes come in bursts; what follows within this time is one. */
const settleMs = 20;

/**
 * Hears of changes of a directory's files, or of one file, as far as the system tells of them; whoever relies on it
 * looks for himself now and then as well. A single file is watched through its directory, since editors replace it.
 */
export class PathWatch {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #changed: () => void;
  #watcher: FSWatcher | undefined;
  /** Which directory is watched: one that was removed and made again is another. */
  #inode: string | undefined;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(path: string, clock: Clock, changed: () => void) {
    this.#path = path;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Watches what is there now, if that is not watched yet. Never fails: a system may have run out of watches. */
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
