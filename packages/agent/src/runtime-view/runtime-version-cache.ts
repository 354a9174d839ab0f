import type { ContainerRuntime, RuntimeVersion } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';

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
