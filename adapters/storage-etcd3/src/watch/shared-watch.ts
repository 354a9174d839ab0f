import { type StorageError, StorageErrorCode } from '@keelson/core';
import type { Revision } from '@keelson/core/storage-adapter';
import { ChangeRing } from './change-ring.ts';
import type { EtcdWatchStream } from './etcd-watch-stream.ts';
import { ProgressSeeker, type ProgressSource } from './progress-seeker.ts';
import { UpstreamWatch, type WatchEnvironment } from './upstream-watch.ts';

export interface SharedWatchOptions {
  readonly environment: WatchEnvironment;
  readonly progress: ProgressSource;
  /** Watchers receive the previous states. */
  readonly prevKv: boolean;
  /** The compacted revision that this process has observed. */
  readonly bound: () => Revision;
  /** Revision at which the store was created; it was empty before. */
  readonly begin: () => Revision;
  /** Reports that etcd is compacted up to a revision. */
  readonly compacted: (bound: Revision) => void;
}

/** A watcher that begins further back reads history on a watch of its own, so that other watchers do not wait. */
const longestStart = 5000;
/** The watch at etcd stays open for this time after its last watcher has left. */
const lingerMs = 30_000;

interface Live {
  readonly upstream: UpstreamWatch;
  readonly seeker: ProgressSeeker;
  readonly ring: ChangeRing;
}

/**
 * One watch at etcd for all watchers of this process of one kind (with or without previous states). The newest changes
 * are in a ring; a watcher is a position in it. A watcher that falls behind the ring reads history on a watch of its
 * own until it has caught up.
 */
export class SharedWatch {
  readonly options: SharedWatchOptions;
  readonly #streams = new Set<EtcdWatchStream>();
  readonly #waiting = new Set<EtcdWatchStream>();
  #live: Live | undefined;
  #wakeQueued = false;
  #cancelLinger: (() => void) | undefined;

  constructor(options: SharedWatchOptions) {
    this.options = options;
  }

  /** Number of watchers. */
  get size(): number {
    return this.#streams.size;
  }

  /** Undefined when nothing is watched. */
  get ring(): ChangeRing | undefined {
    return this.#live?.ring;
  }

  /** Resolves when etcd has confirmed the watch, or when there is none. */
  get established(): Promise<void> {
    return this.#live?.upstream.established ?? Promise.resolve();
  }

  /** @param current the revision the store had when `after` was checked. */
  join(stream: EtcdWatchStream, after: Revision, current: Revision): void {
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#streams.add(stream);
    const start = current - after > longestStart ? current : Math.min(after, current);
    this.#live ??= this.#start(Math.max(start, this.options.begin()));
  }

  leave(stream: EtcdWatchStream): void {
    this.#waiting.delete(stream);
    if (!this.#streams.delete(stream) || this.#streams.size > 0 || this.#live === undefined) return;
    this.#cancelLinger = this.options.environment.clock.after(lingerMs, () => this.#stop());
  }

  setWaiting(stream: EtcdWatchStream, waiting: boolean): void {
    if (waiting) this.#waiting.add(stream);
    else this.#waiting.delete(stream);
  }

  want(revision: Revision): void {
    this.#live?.seeker.want(revision);
  }

  /** Ends every watcher with an error. */
  fail(error: StorageError): void {
    this.#stop();
    for (const stream of [...this.#streams]) stream.fail(error);
  }

  #start(after: Revision): Live {
    const { environment, progress, prevKv } = this.options;
    const ring = new ChangeRing(after);
    const upstream = new UpstreamWatch(environment, {
      after,
      prevKv,
      onChanges: (changes, frontier) => {
        ring.push(changes, frontier);
        this.#wake();
      },
      onFailure: (error) => this.#broken(error),
    });
    return { upstream, ring, seeker: new ProgressSeeker(upstream, progress, environment) };
  }

  /**
   * Handles the end of the watch at etcd. When it fell behind the compacted revision, watchers above that revision
   * continue on a new watch, from the position of the first of them.
   */
  #broken(error: StorageError): void {
    const bound = error.code === StorageErrorCode.Compacted ? error.revision : undefined;
    if (bound === undefined) {
      this.fail(error);
      return;
    }
    this.options.compacted(bound);
    this.#stop();
    let first = Number.POSITIVE_INFINITY;
    for (const stream of [...this.#streams]) {
      if (stream.position < bound) stream.fail(error);
      else first = Math.min(first, stream.position);
    }
    if (first === Number.POSITIVE_INFINITY) return;
    this.#live = this.#start(first);
    for (const stream of this.#streams) stream.seekAgain();
  }

  #stop(): void {
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#live?.seeker.stop();
    this.#live?.upstream.close();
    this.#live = undefined;
  }

  /** Resumes the waiting watchers in a microtask, so that several changes in a row resume them once. */
  #wake(): void {
    if (this.#wakeQueued || this.#waiting.size === 0) return;
    this.#wakeQueued = true;
    queueMicrotask(() => {
      this.#wakeQueued = false;
      for (const stream of [...this.#waiting]) stream.pump();
    });
  }
}
