import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LinuxResources } from '@keelson/container-runtime';

/** Position of the copying of a log. */
export interface LogPosition {
  /** Number of bytes of the engine's log that are copied. */
  readonly offset: number;
  /** Inode of the engine's log file; absent until the file was opened. */
  readonly source?: number;
  /** Inode of the target file, which may have been renamed since. */
  readonly inode: number;
  /** Size of the target file at this position; bytes after it are truncated and copied again. */
  readonly size: number;
  /** The container has exited and its complete log is copied. */
  readonly complete?: boolean;
}

/** Data about a container or sandbox that the engine cannot store. */
export interface StateRecord {
  readonly log?: LogPosition;
  readonly startError?: { readonly message: string; readonly at: number };
  /** The kernel log reports an out-of-memory kill. */
  readonly outOfMemory?: boolean;
  /** Resources that were changed after the creation. */
  readonly resources?: LinuxResources;
  /** Addresses that a network plugin assigned. */
  readonly ips?: readonly string[];
}

/**
 * Stores one small file per container or sandbox, which is replaced atomically; reads are from memory. When the folder
 * is deleted, only the data in the records is lost.
 */
export class StateRecords {
  readonly #folder: string;
  readonly #records = new Map<string, StateRecord>();

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder)) {
      if (!name.endsWith('.json')) continue;
      try {
        this.#records.set(name.slice(0, -'.json'.length), JSON.parse(readFileSync(join(folder, name), 'utf8')));
      } catch {
        // A file that is incomplete after a crash of the machine is ignored.
      }
    }
  }

  get(id: string): StateRecord {
    return this.#records.get(id) ?? {};
  }

  change(id: string, change: StateRecord): void {
    const record = { ...this.get(id), ...change };
    this.#records.set(id, record);
    const path = join(this.#folder, `${id}.json`);
    writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  forget(id: string): void {
    if (this.#records.delete(id)) rmSync(join(this.#folder, `${id}.json`), { force: true });
  }

  /** Deletes the records of all other ids. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of [...this.#records.keys()]) if (!ids.has(id)) this.forget(id);
  }
}
