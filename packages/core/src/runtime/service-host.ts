import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/** Something that runs between start and stop. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Idempotent; resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

/**
 * Starts services in the order given and stops those that started in reverse, each stop within a deadline. The
 * container builds, the host runs: dependency injection neither starts nor stops anything.
 */
export class ServiceHost {
  readonly #services: readonly Service[];
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #stopTimeoutMs: number;
  #started: Service[] = [];
  #stopping: Promise<void> | undefined;

  constructor(services: readonly Service[], clock: Clock, logger: Logger, stopTimeoutMs = 10_000) {
    this.#services = services;
    this.#clock = clock;
    this.#logger = logger;
    this.#stopTimeoutMs = stopTimeoutMs;
  }

  /** When one fails to start, those before it are stopped again and the failure is thrown. */
  async start(): Promise<void> {
    for (const service of this.#services) {
      try {
        await service.start();
        this.#started.push(service);
      } catch (error) {
        await this.stop();
        throw error;
      }
    }
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stopAll();
    return this.#stopping;
  }

  async #stopAll(): Promise<void> {
    for (const service of this.#started.reverse()) {
      try {
        await this.#withDeadline(service);
      } catch (err) {
        this.#logger.error('service did not stop cleanly', { component: service.name, err });
      }
    }
    this.#started = [];
  }

  async #withDeadline(service: Service): Promise<void> {
    let cancel = () => {};
    const deadline = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(this.#stopTimeoutMs, () =>
        reject(new Error(`${service.name} did not stop within ${this.#stopTimeoutMs} ms`)),
      );
    });
    try {
      await Promise.race([service.stop(), deadline]);
    } finally {
      cancel();
    }
  }
}
