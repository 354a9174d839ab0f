import { randomFillSync } from 'node:crypto';
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Logger } from '@keelson/core';

/** Name of the file in the directory of the store. */
export const reserveFile = 'keelson.reserve';
const reserveBytes = 1024 * 1024;
const pieceBytes = 256 * 1024;
const checkEveryMs = 1000;
/** An update may make a value longer by this much while the disk is full: the mark of a deletion takes no more. */
const smallGrowth = 512;
/**
 * What the system reports when a disk or a quota is full: by name, and by number where the driver passes the number on.
 */
const fullCodes: readonly unknown[] = ['ENOSPC', 'EDQUOT', 28, 122];

/** Whether an operation failed because there is no space left. */
export function isDiskFull(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (
      fullCodes.includes((cause as { readonly code?: unknown }).code) ||
      /no space left|quota exceeded/i.test(cause.message)
    ) {
      return true;
    }
  }
  return false;
}

function isInputOutputError(error: unknown): boolean {
  return error instanceof Error && ['EIO', 5].includes((error as { readonly code?: string | number }).code ?? '');
}

/**
 * Disk space that is kept for deletes. Every change of the database needs free pages, a delete as well; on a full disk
 * nobody could make room. So a file of a megabyte is kept beside the data file, and is removed when a commit finds the
 * disk full. From then on deletes and small updates (the mark of a deletion, a finalizer that goes) are accepted, and
 * everything else is refused, until the same amount of space is free again, on the disk or in the data file.
 */
export class DiskReserve {
  readonly #directory: string;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Bytes of pages in the data file that are free for use. */
  readonly #freeInFile: () => number;
  /** Called from time to time while the disk is full, to drop what is not needed. */
  readonly #shrink: () => void;
  #full = false;
  #held = false;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(directory: string, clock: Clock, logger: Logger, freeInFile: () => number, shrink: () => void) {
    this.#directory = directory;
    this.#path = join(directory, reserveFile);
    this.#clock = clock;
    this.#logger = logger;
    this.#freeInFile = freeInFile;
    this.#shrink = shrink;
  }

  /** Removes the reserve of a directory that cannot be opened without space. False when there is none. */
  static giveUp(directory: string): boolean {
    const path = join(directory, reserveFile);
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
    rmSync(path, { force: true });
    return true;
  }

  /** Makes sure of the reserve; without space for it the disk counts as full. */
  begin(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.size === reserveBytes) this.#held = true;
    else if (!this.#fill()) this.#released();
  }

  /** True while only deletes and small updates are accepted. */
  get full(): boolean {
    return this.#full;
  }

  /** Whether a write that makes a value longer by `growth` bytes is accepted now. */
  accepts(growth: number): boolean {
    return !this.#full || growth <= smallGrowth;
  }

  /**
   * Whether a commit failed because the disk is full. The driver reports a page of which a part was written as an I/O
   * error.
   */
  explains(error: unknown): boolean {
    return isDiskFull(error) || (isInputOutputError(error) && this.#freeOnDisk() < reserveBytes);
  }

  /** A commit found the disk full. True when there is space now that there was not before. */
  release(): boolean {
    const had = this.#held;
    rmSync(this.#path, { force: true });
    this.#held = false;
    this.#released();
    return had;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  #released(): void {
    if (!this.#full) {
      this.#full = true;
      const fields = { path: this.#directory, reserve: reserveBytes };
      this.#logger.warn('the disk is full: objects can be deleted, and are not created until there is space', fields);
      this.#shrink();
    }
    this.#arm();
  }

  #arm(): void {
    if (this.#stopped || this.#cancel !== undefined) return;
    this.#cancel = this.#clock.after(checkEveryMs, () => {
      this.#cancel = undefined;
      this.#check();
    });
  }

  #check(): void {
    const onDisk = this.#freeOnDisk();
    // Some space beyond the reserve, so that it is not given up again at once.
    if (onDisk >= 2 * reserveBytes) this.#fill();
    if (this.#held || onDisk + this.#freeInFile() >= 2 * reserveBytes) {
      if (this.#full)
        this.#logger.info('the disk has space again: objects are created again', { path: this.#directory });
      this.#full = false;
    } else this.#shrink();
    // Without the reserve the disk is looked at again, so that it is made as soon as it can be.
    if (!this.#held) this.#arm();
  }

  /** Bytes that repeat nothing, since a file system may store those that do in less space. */
  #fill(): boolean {
    const piece = randomFillSync(Buffer.allocUnsafe(pieceBytes));
    try {
      const descriptor = openSync(this.#path, 'w', 0o600);
      try {
        for (let written = 0; written < reserveBytes; ) written += writeSync(descriptor, piece);
      } finally {
        closeSync(descriptor);
      }
      this.#held = true;
    } catch (error) {
      rmSync(this.#path, { force: true });
      if (!isDiskFull(error)) throw error;
      this.#held = false;
    }
    return this.#held;
  }

  #freeOnDisk(): number {
    const { bavail, bsize } = statfsSync(this.#directory);
    return bavail * bsize;
  }
}
