import { StorageError, StorageErrorCode } from '@keelson/core';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import type { Environment } from './environment.ts';
import { commitLength, decodeCommit, historyKey, type LoggedChange, readRevision } from './records.ts';

/** Changes removed by one transaction. Other writes run between two transactions. */
const stepChanges = 512;

export interface HistoryWindow {
  readonly minChanges: number;
  readonly minAgeMs: number;
}

interface Sample {
  readonly revision: Revision;
  /** Monotonic time, in milliseconds, at which `revision` was the newest revision. */
  readonly at: number;
}

/**
 * Maintains the compacted revision, below which history cannot be read. It is raised on request, and by a timer when
 * changes are outside the window both by count and by age. The bound is written to disk and in force before changes are
 * removed, which happens in small transactions; the next run continues what a crash interrupted. Changes of an earlier
 * process count as made when this one started, so that neither a restart nor a step of the clock removes them early.
 */
export class Compactor {
  readonly #env: Environment;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #window: HistoryWindow;
  readonly #head: () => Revision;
  #samples: Sample[];
  #bound: Revision;
  #raising: Promise<void> = Promise.resolve();
  #removing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #stopped = false;

  constructor(
    env: Environment,
    clock: Clock,
    logger: Logger,
    window: HistoryWindow,
    head: () => Revision,
    readOnly: boolean,
  ) {
    this.#env = env;
    this.#clock = clock;
    this.#logger = logger;
    this.#window = window;
    this.#head = head;
    this.#bound = env.compacted();
    this.#samples = [{ revision: head(), at: clock.monotonic() }];
    this.#stopped = readOnly;
    this.#arm();
    this.#remove();
  }

  get bound(): Revision {
    return this.#bound;
  }

  /** Reports that the newest revision has changed. */
  noteWrites(): void {
    this.#sample();
    this.#arm();
  }

  /** Resolves when the bound is on disk and in force. */
  raise(upTo: Revision): Promise<void> {
    const raised = this.#raising.then(async () => {
      if (upTo <= this.#bound) return;
      try {
        await this.#env.commit(() => this.#env.putCompacted(upTo));
      } catch (cause) {
        throw new StorageError(StorageErrorCode.Unavailable, 'the compacted revision cannot be written', { cause });
      }
      this.#bound = upTo;
      this.#remove();
    });
    this.#raising = raised.catch(() => {});
    return raised;
  }

  /** Resolves when no removal is running. */
  async settled(): Promise<void> {
    await this.#raising;
    while (this.#removing !== undefined) await this.#removing;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    await this.settled();
  }

  #arm(): void {
    if (this.#stopped || this.#cancelTimer !== undefined) return;
    if (this.#head() - this.#bound <= this.#window.minChanges) return;
    this.#cancelTimer = this.#clock.after(Math.max(this.#window.minAgeMs / 10, 1000), () => {
      this.#cancelTimer = undefined;
      this.#sample();
      this.#raiseByWindow();
      this.#arm();
    });
  }

  #sample(): void {
    const at = this.#clock.monotonic();
    const revision = this.#head();
    const last = this.#samples.at(-1);
    if (last === undefined || (revision > last.revision && at - last.at >= this.#window.minAgeMs / 60)) {
      this.#samples.push({ revision, at });
    }
  }

  #raiseByWindow(): void {
    const now = this.#clock.monotonic();
    let oldEnough = 0;
    let kept = 0;
    for (const { revision, at } of this.#samples) {
      if (at > now - this.#window.minAgeMs) break;
      oldEnough = revision;
      kept++;
    }
    // The newest sample that has reached the minimum age is kept until the next one reaches it.
    this.#samples = this.#samples.slice(Math.max(0, kept - 1));
    const bound = Math.min(oldEnough, this.#head() - this.#window.minChanges);
    if (bound > this.#bound) {
      this.raise(bound).catch((err: unknown) => this.#logger.warn('history cannot be compacted now', { err }));
    } else {
      this.#remove();
    }
  }

  #remove(): void {
    if (this.#stopped || this.#removing !== undefined) return;
    this.#removing = this.#removeSteps()
      .catch((err: unknown) => this.#logger.warn('old changes cannot be removed now', { err }))
      .finally(() => {
        this.#removing = undefined;
      });
  }

  async #removeSteps(): Promise<void> {
    while (!this.#stopped) {
      const step = this.#nextStep();
      if (step.length === 0) return;
      await this.#env.commit(() => {
        for (const { logKey, first, changes } of step) {
          for (const [i, { type, key }] of changes.entries()) {
            if (type !== 'create') void this.#env.hist.remove(historyKey(key, first + i));
          }
          void this.#env.log.remove(logKey);
        }
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /**
   * The oldest commits that lie wholly at or below the bound. The newest commit of the store is never removed, because
   * it records the current revision.
   */
  #nextStep(): { logKey: Buffer; first: Revision; changes: LoggedChange[] }[] {
    const step: { logKey: Buffer; first: Revision; changes: LoggedChange[] }[] = [];
    const limit = Math.min(this.#bound, this.#head() - 1);
    let count = 0;
    for (const { key: logKey, value } of this.#env.log.getRange({ limit: stepChanges })) {
      const first = readRevision(logKey);
      if (first + commitLength(value) - 1 > limit) break;
      const changes = decodeCommit(value);
      step.push({ logKey, first, changes });
      count += changes.length;
      if (count >= stepChanges) break;
    }
    return step;
  }
}
