import { closeSync, type FSWatcher, fstatSync, openSync, readSync, statSync, watch } from 'node:fs';
import type { Clock } from '@keelson/core/runtime';
import type { LogPosition } from '../state/state-records.ts';
import { type Converted, convertLines } from './convert-lines.ts';
import { LogTarget } from './log-target.ts';

/** Size of one read, after which other work can run. It exceeds the longest line of an engine. */
const chunkBytes = 256 * 1024;
/** Delay of saving the position after a copied line, so that frequent output causes few writes of the position. */
const saveAfterMs = 500;
/** Interval of reads without file events, for file systems that do not report them. */
const pollIntervalMs = 5_000;

export interface FollowerOptions {
  /** Path of the engine's log file. */
  readonly source: string;
  readonly target: string;
  readonly from: LogPosition | undefined;
  readonly clock: Clock;
  readonly save: (position: LogPosition) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Copies the growing log of a container from the engine's file to the target file. The read position is saved together
 * with the size of the target. After a crash the target is truncated to that size, so no line is lost or repeated.
 */
export class LogFollower {
  readonly #options: FollowerOptions;
  readonly #target: LogTarget;
  readonly #buffer = Buffer.allocUnsafe(chunkBytes);
  #source: number | undefined;
  /** Inode of the source, which detects a replaced file. */
  #sourceInode: number | undefined;
  #watcher: FSWatcher | undefined;
  #offset: number;
  #cancelSave: (() => void) | undefined;
  #cancelPoll = () => {};
  #nextChunk: NodeJS.Immediate | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#offset = options.from?.offset ?? 0;
    this.#sourceInode = options.from?.source;
    this.#target = new LogTarget(options.target, options.from);
    this.#save();
    this.#poll();
  }

  /** Copies the lines so far to the current target file, then opens the file at the target's path again. */
  reopen(): void {
    this.#guard(() => this.#copyAll());
    this.#target.reopen();
    this.#save();
  }

  /** Copies the remaining lines of an exited container. */
  finish(): void {
    this.#guard(() => this.#copyAll());
    this.#save(true);
    this.#release();
  }

  /** Stops copying; another follower can continue from the saved position. */
  close(): void {
    this.#save();
    this.#release();
  }

  #release(): void {
    this.#dropSource();
    this.#cancelPoll();
    this.#cancelSave?.();
    clearImmediate(this.#nextChunk);
    this.#target.close();
  }

  /** Copies one chunk, and schedules the next one if there may be more. */
  #poll = (): void => {
    this.#cancelPoll();
    this.#cancelPoll = this.#options.clock.after(pollIntervalMs, this.#poll);
    if (this.#nextChunk !== undefined) return;
    this.#guard(() => {
      if (!this.#copySome()) return;
      this.#nextChunk = setImmediate(() => {
        this.#nextChunk = undefined;
        this.#poll();
      });
    });
  };

  #copyAll(): void {
    while (this.#copySome());
  }

  /** Copies one chunk; true when there may be more. */
  #copySome(): boolean {
    this.#source ??= this.#openSource();
    if (this.#source === undefined) return false;
    let chunk = this.#read(this.#source);
    if (chunk.consumed === 0) {
      if (!this.#isReplaced()) return false;
      // Before it replaced the file, the engine may have written lines that the first read did not contain.
      chunk = this.#read(this.#source);
      if (chunk.consumed === 0) {
        this.#dropSource();
        [this.#sourceInode, this.#offset] = [undefined, 0];
        return true;
      }
    }
    this.#target.write(chunk.output);
    this.#offset += chunk.consumed;
    this.#cancelSave ??= this.#options.clock.after(saveAfterMs, () => this.#save());
    return true;
  }

  #read(source: number): Converted {
    const length = readSync(source, this.#buffer, 0, chunkBytes, this.#offset);
    return convertLines(this.#buffer.subarray(0, length));
  }

  #openSource(): number | undefined {
    const source = this.#sourcePath();
    try {
      const file = openSync(source, 'r');
      const { ino, size } = fstatSync(file);
      if (size < this.#offset || (this.#sourceInode !== undefined && ino !== this.#sourceInode)) this.#offset = 0;
      this.#sourceInode = ino;
      this.#watcher = watch(source, { persistent: false }, this.#poll);
      this.#watcher.on('error', () => {}); // the timer continues to poll
      return file;
    } catch (error) {
      // The engine creates the file when the container starts.
      if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * Path of the file to read. After a log rotation of Docker, the renamed file is read to its end; its inode identifies
   * it. Otherwise the file is the one that the engine writes to.
   */
  #sourcePath(): string {
    const { source } = this.#options;
    const renamed = `${source}.1`;
    const isCurrent =
      this.#sourceInode !== undefined && statSync(renamed, { throwIfNoEntry: false })?.ino === this.#sourceInode;
    return isCurrent ? renamed : source;
  }

  /** True when the engine has started a new file because the current source was full. */
  #isReplaced(): boolean {
    const now = statSync(this.#options.source, { throwIfNoEntry: false });
    return now !== undefined && (now.ino !== this.#sourceInode || now.size < this.#offset);
  }

  #dropSource(): void {
    this.#watcher?.close();
    if (this.#source !== undefined) closeSync(this.#source);
    this.#source = undefined;
  }

  #save(complete = false): void {
    this.#cancelSave?.();
    this.#cancelSave = undefined;
    const source = this.#sourceInode;
    const position = {
      offset: this.#offset,
      ...this.#target.place,
      ...(source !== undefined && { source }),
      ...(complete && { complete }),
    };
    this.#guard(() => this.#options.save(position));
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
