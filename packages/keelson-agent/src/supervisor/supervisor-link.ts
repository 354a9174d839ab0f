import { connect } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { pause } from '@keelson/client';
import type { Clock, Logger } from '@keelson/core';

export interface SupervisorLinkOptions {
  /** Sees to it that the supervisor runs; resolves with a connection to it. */
  ensure(): Promise<TLSSocket>;
  /** Called when it runs again; when this fails, so has the attempt. */
  restarted(): Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const firstPauseMs = 500;
const longestPauseMs = 30_000;

/**
 * Keeps a supervisor running. It is noticed by the end of an idle connection that it has gone, at once and without
 * asking again and again.
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

  /** Leaves the supervisor alone from now on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#socket?.destroy();
    await this.#restoring;
  }

  /** @throws Error when the connection has ended meanwhile */
  #watch(socket: TLSSocket): void {
    if (socket.destroyed) throw new Error('it has gone again');
    this.#socket = socket;
    // The other end would not leave a connection open on which nothing that it understands is said.
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
    logger.warn('supervisor has gone');
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        await this.#again(signal);
        return;
      } catch (error) {
        logger.error('supervisor is not back yet', { err: error, nextTryMs: pauseMs });
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
