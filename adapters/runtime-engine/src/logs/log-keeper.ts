import { type ContainerId, RuntimeError } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core/runtime';
import type { StateRecords } from '../state/state-records.ts';
import { LogFollower } from './log-follower.ts';

/** Copies the logs of all containers with a log path. */
export class LogKeeper {
  readonly #followers = new Map<ContainerId, LogFollower>();
  readonly #records: StateRecords;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #closed = false;

  constructor(records: StateRecords, clock: Clock, logger: Logger) {
    this.#records = records;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** True when the container has exited and its complete log is copied. */
  isComplete(id: ContainerId): boolean {
    return this.#records.get(id).log?.complete === true;
  }

  /** Starts copying from the saved position, or from the beginning of the log. */
  follow(id: ContainerId, source: string, target: string): void {
    if (this.#closed || this.#followers.has(id) || this.isComplete(id)) return;
    try {
      this.#followers.set(
        id,
        new LogFollower({
          ...{ source, target, clock: this.#clock, from: this.#records.get(id).log },
          save: (log) => this.#records.change(id, { log }),
          onError: (err) => this.#logger.error('cannot copy the log of a container', { container: id, err }),
        }),
      );
    } catch (err) {
      // A failure to write the log must not make the start of the container fail.
      this.#logger.error('cannot open the log of a container', { container: id, err });
    }
  }

  /** Copies the remaining lines of an exited container. */
  finish(id: ContainerId, source: string, target: string): void {
    this.follow(id, source, target);
    this.#followers.get(id)?.finish();
    this.#followers.delete(id);
  }

  /** @throws `Internal` when the file cannot be opened */
  reopen(id: ContainerId): void {
    try {
      this.#followers.get(id)?.reopen();
    } catch (error) {
      throw new RuntimeError('Internal', `cannot reopen the log of container "${id}"`, { cause: error });
    }
  }

  forget(id: ContainerId): void {
    this.#followers.get(id)?.close();
    this.#followers.delete(id);
    this.#records.forget(id);
  }

  /** Stops all copying, because another process may continue it. */
  close(): void {
    this.#closed = true;
    for (const follower of this.#followers.values()) follower.close();
    this.#followers.clear();
  }
}
