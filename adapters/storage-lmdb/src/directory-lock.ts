import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StorageError, StorageErrorCode } from '@keelson/core';

const fileName = 'keelson.lock';
const heldKey = Symbol.for('keelson.storage-lmdb.directories');

interface Owner {
  readonly pid: number;
  /** Tells a process from a later one with the same id; absent where the system does not say. */
  readonly started?: string;
}

/** Directories that this process has open, also through another copy of this package. */
function heldHere(): Set<string> {
  const scope = globalThis as unknown as Record<symbol, Set<string> | undefined>;
  scope[heldKey] ??= new Set();
  return scope[heldKey];
}

/** Boot and start time of a process, on Linux. */
function startOf(pid: number): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may contain anything; field 22 is counted from behind it.
    return `${boot}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return undefined;
  }
}

function ownerIn(path: string): Owner | undefined {
  try {
    const owner = JSON.parse(readFileSync(path, 'utf8')) as Partial<Owner>;
    return typeof owner.pid === 'number' ? (owner as Owner) : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(owner: Owner): boolean {
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const started = startOf(owner.pid);
  if (owner.started !== undefined && started !== undefined) return owner.started === started;
  // The id alone: ours is the one of an earlier process then, for this process would hold the directory itself.
  return owner.pid !== process.pid;
}

/**
 * One process per directory. The lock is a file that names its owner; it is made complete under another name and linked into
 * place, so that it is never seen half written. A lock whose process is gone is taken over.
 */
export class DirectoryLock {
  readonly #directory: string;
  readonly #path: string;

  private constructor(directory: string, path: string) {
    this.#directory = directory;
    this.#path = path;
  }

  /** @throws StorageError `Unavailable` when the directory is in use; the message names the process. */
  static acquire(path: string): DirectoryLock {
    const directory = realpathSync(path);
    const file = join(directory, fileName);
    if (heldHere().has(directory)) throw inUse(directory, 'this process');
    const started = startOf(process.pid);
    const owner: Owner = started === undefined ? { pid: process.pid } : { pid: process.pid, started };
    const draft = `${file}.${process.pid}.${randomUUID()}`;
    writeFileSync(draft, JSON.stringify(owner), { flag: 'wx', mode: 0o600 });
    try {
      for (let attempt = 0; attempt < 10; attempt++) {
        try {
          linkSync(draft, file);
          heldHere().add(directory);
          return new DirectoryLock(directory, file);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
        takeAway(directory, file, draft);
      }
    } finally {
      rmSync(draft, { force: true });
    }
    throw inUse(directory, 'a process that keeps taking the lock');
  }

  release(): void {
    if (ownerIn(this.#path)?.pid === process.pid) rmSync(this.#path, { force: true });
    heldHere().delete(this.#directory);
  }
}

/** Moves a stale lock aside. Whoever finds that it moved a live one, because another was faster, puts it back. */
function takeAway(directory: string, file: string, draft: string): void {
  const owner = ownerIn(file);
  if (owner !== undefined && isAlive(owner)) throw inUse(directory, `process ${owner.pid}`);
  const aside = `${draft}.stale`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const moved = ownerIn(aside);
  try {
    if (moved !== undefined && isAlive(moved)) linkSync(aside, file);
  } finally {
    rmSync(aside, { force: true });
  }
}

function inUse(directory: string, by: string): StorageError {
  return new StorageError(
    StorageErrorCode.Unavailable,
    `the store in ${directory} is in use by ${by}; one process at a time may open it`,
  );
}
