import type { RequestListener } from 'node:http';
import type { Clock, Logger } from '@keelson/core';
import { type Listening, listen } from '../http/listen.ts';

export interface StatsPortOptions {
  readonly port: number;
  readonly listener: RequestListener;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Time until the next attempt to listen: another process may release the port. See
 * docs/reference/agent-rules.md#ports-of-the-agent.
 */
const retryMs = 60_000;
/** Statistics are for this machine alone. */
const address = '127.0.0.1';

/**
 * The port of container statistics. One that is taken is tried again every minute, and keeps nothing else from running.
 */
export class StatsPort {
  readonly #options: StatsPortOptions;
  #listening: Listening | undefined;
  #closed = false;
  #cancel: (() => void) | undefined;
  #trying: Promise<void> | undefined;

  constructor(options: StatsPortOptions) {
    this.#options = options;
  }

  /** Undefined while it cannot be had. */
  get port(): number | undefined {
    return this.#listening?.port;
  }

  /** Resolves after the first attempt, whatever came of it. */
  async open(): Promise<void> {
    this.#trying = this.#try();
    await this.#trying;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    await this.#trying;
    await this.#listening?.close();
    this.#listening = undefined;
  }

  async #try(): Promise<void> {
    const { port, listener, clock, logger } = this.#options;
    try {
      const listening = await listen({ address, port, listener });
      if (this.#closed) await listening.close();
      else this.#listening = listening;
    } catch (error) {
      const problem = (error as Error).message;
      logger.warn('--stats-port cannot be opened; it is tried again in a minute', { port, problem });
      if (this.#closed) return;
      this.#cancel = clock.after(retryMs, () => {
        this.#trying = this.#try();
      });
    }
  }
}
