import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LinuxResources } from '@keelson/container-runtime';

/** How far a log was copied. */
export interface LogPosition {
  /** Bytes of the engine's log that are in the target. */
  readonly offset: number;
  /** The engine's file, by its number; absent until there was one. */
  readonly source?: number;
  /** The file they are in, by its number: its name may be another now. */
  readonly inode: number;
  /** Its size at that time: what is behind it was written later, and is written again. */
  readonly size: number;
  /** The container has exited and everything is copied. */
  readonly complete?: boolean;
}

/** What the engine cannot keep about a container or sandbox. */
export interface StateRecord {
  readonly log?: LogPosition;
  readonly startError?: { readonly message: string; readonly at: number };
  /** The kernel said that it was killed for want of memory. */
  readonly outOfMemory?: boolean;
  /** Changed since the creation. */
  readonly resources?: LinuxResources;
  /** Addresses that a network plugin gave. */
  readonly ips?: readonly string[];
}

/**
 * One small file per container, replaced in one step. Reads are from memory. Losing the folder costs what is in the
 * records, nothing else.
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
        // Torn by a crash of the machine: as if it had never been.
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

  /** Forgets what is not among these. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of [...this.#records.keys()]) if (!ids.has(id)) this.forget(id);
  }
}
