import { randomFillSync } from 'node:crypto';
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, Logger } from '@keelson/core/runtime';

/** Name of the file in the directory of the store. */
export const reserveFile = 'keelson.reserve';
const reserveBytes = 1024 * 1024;
const pieceBytes = 256 * 1024;
const checkEveryMs = 1000;
/** Bytes by which an update may lengthen a value while the disk is full: enough for a deletion timestamp. */
const smallGrowth = 512;
/**
 * Error codes for a full disk or an exhausted quota: names, and numbers where the driver passes the number on.
 */
const fullCodes: readonly unknown[] = ['ENOSPC', 'EDQUOT', 28, 122];

/** Returns whether an operation failed because no space is left on the disk. */
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
 * Disk space that is reserved for deletes. Every change of the database needs free pages, also a delete, so that no
 * space could be freed on a full disk. A file of one megabyte beside the data file is removed when a commit fails
 * because the disk is full. From then on deletes and small updates (a deletion timestamp, the removal of a finalizer)
 * are accepted, and all other writes are refused, until the same amount of space is free again, on the disk or in the
 * data file.
 */
export class DiskReserve {
  readonly #directory: string;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Returns the size, in bytes, of the unused pages of the data file. */
  readonly #freeInFile: () => number;
  /** Called periodically while the disk is full, to drop history. */
  readonly #shrink: () => void;
  #full = false;
  /** The reserve file exists. */
  #reserved = false;
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

  /**
   * Removes the reserve file so that a store that needs disk space can be opened. Returns false when there is no
   * reserve.
   */
  static giveUp(directory: string): boolean {
    const path = join(directory, reserveFile);
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
    rmSync(path, { force: true });
    return true;
  }

  /** Creates the reserve unless it exists. Without space for it the disk counts as full. */
  begin(): void {
    if (statSync(this.#path, { throwIfNoEntry: false })?.size === reserveBytes) this.#reserved = true;
    else if (!this.#fill()) this.#released();
  }

  /** True while only deletes and small updates are accepted. */
  get full(): boolean {
    return this.#full;
  }

  /** Returns whether a write that lengthens a value by `growth` bytes is accepted now. */
  accepts(growth: number): boolean {
    return !this.#full || growth <= smallGrowth;
  }

  /**
   * Returns whether a commit failed because the disk is full. The driver reports a partly written page as an I/O error.
   */
  explains(error: unknown): boolean {
    return isDiskFull(error) || (isInputOutputError(error) && this.#freeOnDisk() < reserveBytes);
  }

  /** Removes the reserve after a commit failed on a full disk. Returns true when that has freed space. */
  release(): boolean {
    const had = this.#reserved;
    rmSync(this.#path, { force: true });
    this.#reserved = false;
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
      this.#logger.warn('the disk is full: only deletes and small updates are accepted until space is free', fields);
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
    // The reserve is created again when twice its size is free, so that the next commits do not need it immediately.
    if (onDisk >= 2 * reserveBytes) this.#fill();
    if (this.#reserved || onDisk + this.#freeInFile() >= 2 * reserveBytes) {
      if (this.#full)
        this.#logger.info('the disk has free space again: all writes are accepted', { path: this.#directory });
      this.#full = false;
    } else this.#shrink();
    // Without the reserve the disk is checked again, so that the reserve is created as soon as possible.
    if (!this.#reserved) this.#arm();
  }

  /** Writes random bytes, since a file system may compress repeated ones. */
  #fill(): boolean {
    const piece = randomFillSync(Buffer.allocUnsafe(pieceBytes));
    try {
      const descriptor = openSync(this.#path, 'w', 0o600);
      try {
        for (let written = 0; written < reserveBytes; ) written += writeSync(descriptor, piece);
      } finally {
        closeSync(descriptor);
      }
      this.#reserved = true;
    } catch (error) {
      rmSync(this.#path, { force: true });
      if (!isDiskFull(error)) throw error;
      this.#reserved = false;
    }
    return this.#reserved;
  }

  #freeOnDisk(): number {
    const { bavail, bsize } = statfsSync(this.#directory);
    return bavail * bsize;
  }
}
