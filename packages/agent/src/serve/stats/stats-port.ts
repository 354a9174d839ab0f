import type { RequestListener } from 'node:http';
import type { Clock, Logger } from '@keelson/core/runtime';
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
/** Statistics are only served to this host. */
const address = '127.0.0.1';

/**
 * The port of container statistics. When it is in use, opening it is retried every minute; this does not affect other
 * ports.
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

  /** Undefined while it is not open. */
  get port(): number | undefined {
    return this.#listening?.port;
  }

  /** Resolves after the first attempt, successful or not. */
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
      logger.warn('--stats-port cannot be opened; retrying in a minute', { port, problem });
      if (this.#closed) return;
      this.#cancel = clock.after(retryMs, () => {
        this.#trying = this.#try();
      });
    }
  }
}
