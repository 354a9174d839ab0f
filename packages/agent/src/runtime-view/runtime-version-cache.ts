import type { ContainerRuntime, RuntimeVersion } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core';

/**
 * Engines look for what to answer in the packages of their machine, which costs more than all the rest of a node's
 * report.
 */
const goodForMs = 300_000;

/** The version of a runtime, asked for now and then. A runtime that does not answer has the version it had. */
export class RuntimeVersionCache {
  readonly #runtime: Pick<ContainerRuntime, 'version'>;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #version: RuntimeVersion | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(runtime: Pick<ContainerRuntime, 'version'>, clock: Clock, timeoutMs: number) {
    this.#runtime = runtime;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** As it was last reported. */
  get last(): RuntimeVersion | undefined {
    return this.#version;
  }

  /** Undefined while the runtime has never answered. */
  async get(): Promise<RuntimeVersion | undefined> {
    if (this.#version !== undefined && this.#clock.monotonic() - this.#askedMs < goodForMs) return this.#version;
    try {
      this.#version = await this.#runtime.version({ timeoutMs: this.#timeoutMs });
      this.#askedMs = this.#clock.monotonic();
    } catch {
      // Asked again with the next report.
    }
    return this.#version;
  }
}
