import { closeSync, type FSWatcher, fstatSync, openSync, readSync, statSync, watch } from 'node:fs';
import type { Clock } from '@keelson/core';
import type { LogPosition } from '../state/state-records.ts';
import { type Converted, convertLines } from './convert-lines.ts';
import { LogTarget } from './log-target.ts';

/** Read at once; other work comes in between. Longer than any line of an engine. */
const chunkBytes = 256 * 1024;
/**
 * Positions are written down this much later than the lines, so that a container that writes much costs few position
 * writes.
 */
const saveAfterMs = 500;
/** File events are enough; this is for file systems without. */
const lookAgainMs = 5_000;

export interface FollowerOptions {
  /** The engine's log. */
  readonly source: string;
  readonly target: string;
  readonly from: LogPosition | undefined;
  readonly clock: Clock;
  readonly save: (position: LogPosition) => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Copies the log of a container from the engine's file to the one that others read, while it grows. Where it got to is
 * saved with the size that the target had then; after a crash the target is cut back to that size, so no line is lost
 * and none comes twice.
 */
export class LogFollower {
  readonly #options: FollowerOptions;
  readonly #target: LogTarget;
  readonly #buffer = Buffer.allocUnsafe(chunkBytes);
  #source: number | undefined;
  /** Number of the source, by which a file that took its place is told. */
  #sourceInode: number | undefined;
  #watcher: FSWatcher | undefined;
  #offset: number;
  #cancelSave: (() => void) | undefined;
  #cancelLook = () => {};
  #turn: NodeJS.Immediate | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#offset = options.from?.offset ?? 0;
    this.#sourceInode = options.from?.source;
    this.#target = new LogTarget(options.target, options.from);
    this.#save();
    this.#look();
  }

  /** Opens the file at the target's path anew; what was read before is in the old one. */
  reopen(): void {
    this.#guard(() => this.#copyAll());
    this.#target.reopen();
    this.#save();
  }

  /** Copies what is left of a container that has exited. */
  finish(): void {
    this.#guard(() => this.#copyAll());
    this.#save(true);
    this.#letGo();
  }

  /** Stops copying; another follower can go on. */
  close(): void {
    this.#save();
    this.#letGo();
  }

  #letGo(): void {
    this.#dropSource();
    this.#cancelLook();
    this.#cancelSave?.();
    clearImmediate(this.#turn);
    this.#target.close();
  }

  /** Reads one chunk, and goes on later if there is more. */
  #look = (): void => {
    this.#cancelLook();
    this.#cancelLook = this.#options.clock.after(lookAgainMs, this.#look);
    if (this.#turn !== undefined) return;
    this.#guard(() => {
      if (!this.#copySome()) return;
      this.#turn = setImmediate(() => {
        this.#turn = undefined;
        this.#look();
      });
    });
  };

  #copyAll(): void {
    while (this.#copySome());
  }

  /** True when there may be more. */
  #copySome(): boolean {
    this.#source ??= this.#openSource();
    if (this.#source === undefined) return false;
    let chunk = this.#read(this.#source);
    if (chunk.consumed === 0) {
      if (!this.#isReplaced()) return false;
      // Something may have come between the two looks.
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
      this.#watcher = watch(source, { persistent: false }, this.#look);
      this.#watcher.on('error', () => {}); // the timer goes on
      return file;
    } catch (error) {
      // The engine makes the file when the container starts.
      if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * The file to be read: the one that Docker has renamed if it is the one that was read so far, else the one that the
   * engine writes to.
   */
  #sourcePath(): string {
    const { source } = this.#options;
    const renamed = `${source}.1`;
    const isCurrent =
      this.#sourceInode !== undefined && statSync(renamed, { throwIfNoEntry: false })?.ino === this.#sourceInode;
    return isCurrent ? renamed : source;
  }

  /** An engine begins a new file when the one read so far is full. */
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
