import { WorkQueue } from '@keelson/client';
import type { ContainerRuntime, RuntimeEvent, SandboxId } from '@keelson/container-runtime';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';
import { isEnd } from './runtime-objects.ts';
import type { RuntimePods } from './runtime-pods.ts';

export interface RelisterOptions {
  readonly runtime: ContainerRuntime;
  readonly states: RuntimePods;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time between two relists while the runtime sends no events. */
  readonly periodMs: number;
  /** Time between two relists while the runtime sends events. */
  readonly quietPeriodMs: number;
  /** Called after every complete relist. */
  readonly onRelisted: () => void;
}

/** Number of pods that are inspected at the same time. */
const parallelInspections = 8;

/**
 * A part of the agent that changes a pod inspects the pod afterwards, so events of such changes are handled with this
 * delay. The end of a container is handled immediately.
 */
const ownChangeDelayMs = 100;

/**
 * Keeps `RuntimePods` up to date: relists the runtime periodically, and inspects a single pod when the runtime sends an
 * event about it.
 */
export class Relister {
  readonly #options: RelisterOptions;
  readonly #stop = new AbortController();
  readonly #queue: WorkQueue;
  /** Events of each sandbox since its last inspection, one for each type and container. */
  readonly #pending = new Map<SandboxId, Map<string, RuntimeEvent>>();
  #wake: AbortController = new AbortController();
  #receiving = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: RelisterOptions) {
    this.#options = options;
    const { clock, logger, periodMs } = options;
    this.#queue = new WorkQueue({
      name: 'pod-inspection',
      clock,
      logger,
      workers: parallelInspections,
      firstRetryMs: periodMs,
      work: (id, signal) => this.#inspect(id, signal),
    });
  }

  start(): void {
    this.#running = Promise.all([this.#relist(), this.#receive()]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await Promise.all([this.#running, this.#queue.stop()]);
  }

  async #relist(): Promise<void> {
    const { states, clock, logger, onRelisted, periodMs, quietPeriodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      // Set before the relist, so that a request during the relist starts another one.
      this.#wake = new AbortController();
      let failed = false;
      try {
        await states.relist(signal);
        onRelisted();
      } catch (err) {
        failed = true;
        if (!signal.aborted) logger.warn('relist of the runtime failed', { component: 'relist', err });
      }
      if (signal.aborted) return;
      await pause(clock, this.#receiving && !failed ? quietPeriodMs : periodMs, this.#wake.signal);
    }
  }

  async #receive(): Promise<void> {
    const { runtime, clock, logger, periodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted && runtime.events !== undefined) {
      try {
        for await (const event of runtime.events({ signal })) this.#accept(event);
      } catch (err) {
        if (!signal.aborted) logger.warn('event stream of the runtime ended', { component: 'relist', err });
      }
      this.#receiving = false;
      // The current pause was chosen while events were received.
      this.#wake.abort();
      if (!signal.aborted) await pause(clock, periodMs, signal);
    }
  }

  #accept(event: RuntimeEvent): void {
    if (event.type === 'resync') {
      this.#receiving = true;
      this.#wake.abort();
      return;
    }
    if (this.#options.states.reflects(event)) return;
    const pending = this.#pending.get(event.sandboxId) ?? new Map<string, RuntimeEvent>();
    pending.set(`${event.type} ${'containerId' in event ? event.containerId : ''}`, event);
    this.#pending.set(event.sandboxId, pending);
    if (isEnd(event)) this.#queue.add(event.sandboxId);
    else this.#queue.addAfter(event.sandboxId, ownChangeDelayMs);
  }

  /** Handles all pending events of a sandbox by one inspection. An event during the inspection starts another one. */
  async #inspect(id: SandboxId, signal: AbortSignal): Promise<undefined> {
    const { states } = this.#options;
    const pending = this.#pending.get(id);
    if (pending === undefined || [...pending.values()].every((event) => states.reflects(event))) {
      this.#pending.delete(id);
      return undefined;
    }
    this.#pending.delete(id);
    try {
      await states.inspectSandbox(id, signal);
    } catch (error) {
      this.#pending.set(id, new Map([...pending, ...(this.#pending.get(id) ?? [])]));
      throw error;
    }
    return undefined;
  }
}
