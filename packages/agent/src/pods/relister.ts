import { pause } from '@keelson/client';
import type { ContainerRuntime } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import type { PodStates } from './pod-states.ts';

export interface RelisterOptions {
  readonly runtime: ContainerRuntime;
  readonly states: PodStates;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Pause between looks while no events come. */
  readonly periodMs: number;
  /** Pause while events come, which tell of changes sooner. */
  readonly quietPeriodMs: number;
  /** The first complete look, and each one after. */
  readonly onRelisted: () => void;
}

/** Looks at the runtime again and again, and at once when it says that something happened. */
export class Relister {
  readonly #options: RelisterOptions;
  readonly #stop = new AbortController();
  #wake: AbortController = new AbortController();
  #listening = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: RelisterOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = Promise.all([this.#look(), this.#listen()]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#running;
  }

  async #look(): Promise<void> {
    const { states, clock, logger, onRelisted, periodMs, quietPeriodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      // A new one before the look: what happens during it makes another look follow.
      this.#wake = new AbortController();
      let failed = false;
      try {
        await states.relist(signal);
        onRelisted();
      } catch (err) {
        failed = true;
        if (!signal.aborted) logger.warn('runtime could not be listed', { component: 'relist', err });
      }
      if (signal.aborted) return;
      await pause(clock, this.#listening && !failed ? quietPeriodMs : periodMs, this.#wake.signal);
    }
  }

  async #listen(): Promise<void> {
    const { runtime, clock, logger, periodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted && runtime.events !== undefined) {
      try {
        for await (const event of runtime.events({ signal })) {
          if (event.type === 'resync') this.#listening = true;
          this.#wake.abort();
        }
      } catch (err) {
        if (!signal.aborted) logger.warn('events of the runtime ended', { component: 'relist', err });
      }
      this.#listening = false;
      if (!signal.aborted) await pause(clock, periodMs, signal);
    }
  }
}
