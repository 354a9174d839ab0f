import { connect } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { type Clock, type Logger, pause } from '@keelson/core/runtime';

export interface SupervisorLinkOptions {
  /** Ensures that the supervisor runs; resolves with a connection to it. */
  ensure(): Promise<TLSSocket>;
  /** Called after each restart of the supervisor. When it rejects, the restart counts as failed and is repeated. */
  restarted(): Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const firstPauseMs = 500;
const longestPauseMs = 30_000;

/**
 * Keeps a supervisor running. The end of an idle connection shows immediately, without polling, that the supervisor has
 * ended.
 */
export class SupervisorLink implements AsyncDisposable {
  readonly #options: SupervisorLinkOptions;
  readonly #closed = new AbortController();
  #socket: TLSSocket | undefined;
  #restoring: Promise<void> | undefined;

  constructor(options: SupervisorLinkOptions) {
    this.#options = options;
  }

  /** @throws as `ensure` does */
  async open(): Promise<void> {
    this.#watch(await this.#options.ensure());
  }

  /** Stops monitoring the supervisor, which continues to run. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#socket?.destroy();
    await this.#restoring;
  }

  /** @throws Error when the connection has ended meanwhile */
  #watch(socket: TLSSocket): void {
    if (socket.destroyed) throw new Error('the supervisor has ended again');
    this.#socket = socket;
    // The server closes connections that do not complete the HTTP/2 preface.
    const session = connect('https://localhost', { createConnection: () => socket });
    session.unref();
    session.on('error', () => {});
    session.once('close', () => {
      if (!this.#closed.signal.aborted) this.#restoring = this.#restore();
    });
  }

  async #restore(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#closed;
    logger.warn('supervisor connection lost');
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        await this.#again(signal);
        return;
      } catch (error) {
        logger.error('supervisor restart failed', { err: error, nextTryMs: pauseMs });
      }
      await pause(clock, pauseMs, signal);
    }
  }

  async #again(signal: AbortSignal): Promise<void> {
    const socket = await this.#options.ensure();
    try {
      await this.#options.restarted();
      signal.throwIfAborted();
      this.#watch(socket);
    } catch (error) {
      socket.destroy();
      if (!signal.aborted) throw error;
    }
  }
}
