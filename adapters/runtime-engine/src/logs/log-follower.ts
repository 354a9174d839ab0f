import { closeSync, type FSWatcher, openSync, readSync, watch } from 'node:fs';
import type { Clock } from '@keelson/core';
import type { LogPosition } from '../state/state-records.ts';
import { convertLines } from './convert-lines.ts';
import { LogTarget } from './log-target.ts';

/** Read at once; other work comes in between. Longer than any line of an engine. */
const chunkBytes = 256 * 1024;
/** Positions are written down this much later than the lines, so that a container that writes much costs few position writes. */
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
 * Copies the log of a container from the engine's file to the one that others read, while it grows. Where it got to is saved with the size
 * that the target had then; after a crash the target is cut back to that size, so no line is lost and none comes twice.
 */
export class LogFollower {
  readonly #options: FollowerOptions;
  readonly #target: LogTarget;
  readonly #buffer = Buffer.allocUnsafe(chunkBytes);
  #source: number | undefined;
  #watcher: FSWatcher | undefined;
  #offset: number;
  #cancelSave: (() => void) | undefined;
  #cancelLook = () => {};
  #turn: NodeJS.Immediate | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#offset = options.from?.offset ?? 0;
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
    this.#watcher?.close();
    this.#cancelLook();
    this.#cancelSave?.();
    clearImmediate(this.#turn);
    if (this.#source !== undefined) closeSync(this.#source);
    this.#source = undefined;
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
    const length = readSync(this.#source, this.#buffer, 0, chunkBytes, this.#offset);
    const { consumed, output } = convertLines(this.#buffer.subarray(0, length));
    if (consumed === 0) return false;
    this.#target.write(output);
    this.#offset += consumed;
    this.#cancelSave ??= this.#options.clock.after(saveAfterMs, () => this.#save());
    return length === chunkBytes;
  }

  #openSource(): number | undefined {
    const { source } = this.#options;
    try {
      const file = openSync(source, 'r');
      this.#watcher = watch(source, { persistent: false }, this.#look);
      this.#watcher.on('error', () => {}); // the timer goes on
      return file;
    } catch (error) {
      // The engine makes the file when the container starts.
      if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  #save(complete = false): void {
    this.#cancelSave?.();
    this.#cancelSave = undefined;
    this.#guard(() => this.#options.save({ offset: this.#offset, ...this.#target.place, ...(complete && { complete }) }));
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.onError(error);
    }
  }
}
