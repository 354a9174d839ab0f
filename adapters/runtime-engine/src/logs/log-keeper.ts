import { type ContainerId, RuntimeError } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import type { StateRecords } from '../state/state-records.ts';
import { LogFollower } from './log-follower.ts';

/** Copies the logs of all containers that have one. */
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

  /** True when the log has everything that the container wrote until it exited. */
  isComplete(id: ContainerId): boolean {
    return this.#records.get(id).log?.complete === true;
  }

  /** Begins, or goes on from where an earlier process got to. */
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
      // A log that cannot be written is no reason to have no container.
      this.#logger.error('cannot open the log of a container', { container: id, err });
    }
  }

  /** Copies the rest, once the container has exited. */
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
      throw new RuntimeError('Internal', `cannot open the log of container "${id}" anew`, { cause: error });
    }
  }

  forget(id: ContainerId): void {
    this.#followers.get(id)?.close();
    this.#followers.delete(id);
    this.#records.forget(id);
  }

  /** Another process may go on from now on, so nothing is followed any more. */
  close(): void {
    this.#closed = true;
    for (const follower of this.#followers.values()) follower.close();
    this.#followers.clear();
  }
}
