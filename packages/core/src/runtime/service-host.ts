import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/** Something that runs between start and stop. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  /** Why {@link start} has not finished yet, for a log line. */
  waitingFor?(): string | undefined;
  /** Idempotent; resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

/** A start that takes longer is logged, and logged again after each {@link repeatFactor} times this time. */
const slowStartMs = 3_000;
const repeatFactor = 5;

/**
 * Starts services in the order given and stops those that started in reverse, each stop within a deadline. Dependency
 * injection only creates services, and the host starts and stops them.
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

  /**
   * When one fails to start, those before it are stopped again and the failure is thrown. `signal` ends the start at
   * any point: what has started, and what is starting, is stopped, and the signal's reason is thrown.
   */
  async start(signal?: AbortSignal): Promise<void> {
    for (const service of this.#services) {
      try {
        signal?.throwIfAborted();
        await this.#startOne(service, signal);
        this.#started.push(service);
      } catch (error) {
        if (signal?.aborted) this.#started.push(service);
        await this.stop();
        throw error;
      }
    }
  }

  async #startOne(service: Service, signal: AbortSignal | undefined): Promise<void> {
    const began = this.#clock.monotonic();
    let cancel = () => {};
    const report = (afterMs: number) => {
      cancel = this.#clock.after(afterMs, () => {
        const seconds = Math.round((this.#clock.monotonic() - began) / 1000);
        const reason = service.waitingFor?.();
        this.#logger.warn('the start is delayed', {
          component: service.name,
          seconds,
          ...(reason === undefined ? {} : { reason }),
        });
        report(slowStartMs * repeatFactor);
      });
    };
    report(slowStartMs);
    const starting = service.start();
    let abort = () => {};
    try {
      if (signal === undefined) return await starting;
      const aborted = new Promise<never>((_, reject) => {
        abort = () => reject(signal.reason as Error);
        signal.addEventListener('abort', abort, { once: true });
      });
      await Promise.race([starting, aborted]);
    } finally {
      cancel();
      signal?.removeEventListener('abort', abort);
      starting.catch(() => {});
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
