import { pause, WorkQueue } from '@keelson/client';
import type { ContainerRuntime, RuntimeEvent, SandboxId } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import { isEnd } from './runtime-objects.ts';
import type { RuntimePods } from './runtime-pods.ts';

export interface RelisterOptions {
  readonly runtime: ContainerRuntime;
  readonly states: RuntimePods;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Pause between looks at everything while no events come. */
  readonly periodMs: number;
  /** Pause while events come, which tell of changes sooner. */
  readonly quietPeriodMs: number;
  /** The first complete look, and each one after. */
  readonly onRelisted: () => void;
}

/** Pods that are looked at side by side. */
const lookers = 8;

/**
 * What the agent brings about itself is seen by whoever does it, right afterwards, so such events may wait. An end is
 * heeded at once.
 */
const ownDoingMs = 100;

/**
 * Looks at everything in the runtime again and again, and at single pods at once when it says that something happened
 * to them.
 */
export class Relister {
  readonly #options: RelisterOptions;
  readonly #stop = new AbortController();
  readonly #queue: WorkQueue;
  /** What was heard of each sandbox since somebody last looked for it, one event of each type and container. */
  readonly #heard = new Map<SandboxId, Map<string, RuntimeEvent>>();
  #wake: AbortController = new AbortController();
  #listening = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: RelisterOptions) {
    this.#options = options;
    const { clock, logger, periodMs } = options;
    this.#queue = new WorkQueue({
      name: 'pod-look',
      clock,
      logger,
      workers: lookers,
      firstRetryMs: periodMs,
      work: (id, signal) => this.#lookInto(id, signal),
    });
  }

  start(): void {
    this.#running = Promise.all([this.#look(), this.#listen()]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await Promise.all([this.#running, this.#queue.stop()]);
  }

  async #look(): Promise<void> {
    const { states, clock, logger, onRelisted, periodMs, quietPeriodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      // A new one before the look: a wish for a look that comes during it makes another one follow.
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
        for await (const event of runtime.events({ signal })) this.#hear(event);
      } catch (err) {
        if (!signal.aborted) logger.warn('events of the runtime ended', { component: 'relist', err });
      }
      this.#listening = false;
      // The pause that is under way was chosen when changes were told.
      this.#wake.abort();
      if (!signal.aborted) await pause(clock, periodMs, signal);
    }
  }

  #hear(event: RuntimeEvent): void {
    if (event.type === 'resync') {
      this.#listening = true;
      this.#wake.abort();
      return;
    }
    if (this.#options.states.shows(event)) return;
    const heard = this.#heard.get(event.sandboxId) ?? new Map<string, RuntimeEvent>();
    heard.set(`${event.type} ${'containerId' in event ? event.containerId : ''}`, event);
    this.#heard.set(event.sandboxId, heard);
    if (isEnd(event)) this.#queue.add(event.sandboxId);
    else this.#queue.addAfter(event.sandboxId, ownDoingMs);
  }

  /** Many events of one pod are one look; one that comes during a look is followed by another. */
  async #lookInto(id: SandboxId, signal: AbortSignal): Promise<undefined> {
    const { states } = this.#options;
    const heard = this.#heard.get(id);
    if (heard === undefined || [...heard.values()].every((event) => states.shows(event))) {
      this.#heard.delete(id);
      return undefined;
    }
    this.#heard.delete(id);
    try {
      await states.lookInto(id, signal);
    } catch (error) {
      this.#heard.set(id, new Map([...heard, ...(this.#heard.get(id) ?? [])]));
      throw error;
    }
    return undefined;
  }
}
