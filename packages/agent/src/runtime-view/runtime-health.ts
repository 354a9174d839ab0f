import type { ContainerRuntime, RuntimeStatus, RuntimeVersion } from '@keelson/container-runtime';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';

export interface RuntimeHealthOptions {
  readonly runtime: ContainerRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly periodMs: number;
  /** The runtime is down when it has not been ready for this time. */
  readonly downAfterMs: number;
  readonly callTimeoutMs: number;
  /** Called when the result of `problems` or `networkReady` has changed. */
  readonly onChange: () => void;
}

/** Polls the status of the runtime. */
export class RuntimeHealth {
  readonly #options: RuntimeHealthOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #readyMs: number | undefined;
  #last: RuntimeStatus | undefined;
  #reported = '';

  constructor(options: RuntimeHealthOptions) {
    this.#options = options;
  }

  /** Resolves after the first poll. */
  async start(): Promise<void> {
    await this.#poll();
    this.#running = this.#repeat();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  networkReady(): boolean {
    return this.#condition('NetworkReady')?.status === true;
  }

  /** The reasons why the node cannot run pods; empty when it can. */
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
      if (!signal.aborted) await this.#poll();
    }
  }

  async #poll(): Promise<void> {
    const { runtime, clock, logger, callTimeoutMs, periodMs, onChange } = this.#options;
    try {
      const timeoutMs = Math.min(callTimeoutMs, Math.max(periodMs, 1_000) * 2);
      this.#last = await runtime.status({ signal: this.#stop.signal, timeoutMs });
      if (this.#condition('RuntimeReady')?.status === true) this.#readyMs = clock.monotonic();
    } catch (err) {
      if (!this.#stop.signal.aborted)
        logger.warn('status of the runtime could not be read', { component: 'runtime-health', err });
    }
    const reported = JSON.stringify([this.problems(), this.networkReady()]);
    if (reported === this.#reported) return;
    this.#reported = reported;
    onChange();
  }

  #condition(type: 'RuntimeReady' | 'NetworkReady'): RuntimeStatus['conditions'][number] | undefined {
    return this.#last?.conditions.find((condition) => condition.type === type);
  }
}

/**
 * The lifetime of the cached version. Engines read the package database of the machine for the answer, which costs more
 * than the rest of a node report.
 */
const lifetimeMs = 300_000;

/** Caches the version of the runtime. When the runtime does not answer, the previous version is returned. */
export class RuntimeVersionCache {
  readonly #runtime: Pick<ContainerRuntime, 'version'>;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #version: RuntimeVersion | undefined;
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(runtime: Pick<ContainerRuntime, 'version'>, clock: Clock, timeoutMs: number) {
    this.#runtime = runtime;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** The last version that the runtime returned. */
  get last(): RuntimeVersion | undefined {
    return this.#version;
  }

  /** Undefined when the runtime has never answered. */
  async get(): Promise<RuntimeVersion | undefined> {
    if (this.#version !== undefined && this.#clock.monotonic() - this.#readMs < lifetimeMs) return this.#version;
    try {
      this.#version = await this.#runtime.version({ timeoutMs: this.#timeoutMs });
      this.#readMs = this.#clock.monotonic();
    } catch {
      // Retried with the next report.
    }
    return this.#version;
  }
}
