import { pause } from '@keelson/client';
import type { ContainerRuntime, RuntimeStatus } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';

export interface RuntimeHealthOptions {
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly periodMs: number;
  /** The runtime counts as down when it has not said that it is ready for so long. */
  readonly downAfterMs: number;
  readonly callTimeoutMs: number;
  /** Called when the answer of `problems` or `networkReady` is another than before. */
  readonly onChange: () => void;
}

/** Asks the runtime how it is, again and again. */
export class RuntimeHealth {
  readonly #options: RuntimeHealthOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #readyMs: number | undefined;
  #last: RuntimeStatus | undefined;
  #told = '';

  constructor(options: RuntimeHealthOptions) {
    this.#options = options;
  }

  /** Resolves after the first question. */
  async start(): Promise<void> {
    await this.#ask();
    this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  networkReady(): boolean {
    return this.#condition('NetworkReady')?.status === true;
  }

  /** Why the node cannot run pods; empty when it can. */
  problems(): string[] {
    const { clock, downAfterMs } = this.#options;
    const found: string[] = [];
    if (this.#readyMs === undefined || clock.monotonic() - this.#readyMs > downAfterMs)
      found.push('container runtime is down');
    const network = this.#condition('NetworkReady');
    if (network !== undefined && !network.status) {
      found.push(
        `runtime network not ready: NetworkReady=false reason:${network.reason ?? ''} message:${network.message ?? ''}`,
      );
    }
    return found;
  }

  async #repeat(): Promise<void> {
    const { clock, periodMs } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await pause(clock, periodMs, signal);
      if (!signal.aborted) await this.#ask();
    }
  }

  async #ask(): Promise<void> {
    const { runtime, clock, logger, callTimeoutMs, periodMs, onChange } = this.#options;
    try {
      const timeoutMs = Math.min(callTimeoutMs, Math.max(periodMs, 1_000) * 2);
      this.#last = await runtime.status({ signal: this.#stop.signal, timeoutMs });
      if (this.#condition('RuntimeReady')?.status === true) this.#readyMs = clock.monotonic();
    } catch (err) {
      if (!this.#stop.signal.aborted) logger.warn('runtime does not answer', { component: 'runtime-health', err });
    }
    const said = JSON.stringify([this.problems(), this.networkReady()]);
    if (said === this.#told) return;
    this.#told = said;
    onChange();
  }

  #condition(type: 'RuntimeReady' | 'NetworkReady'): RuntimeStatus['conditions'][number] | undefined {
    return this.#last?.conditions.find((condition) => condition.type === type);
  }
}
