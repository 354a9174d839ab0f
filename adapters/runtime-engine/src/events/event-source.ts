import type { IncomingMessage } from 'node:http';
import { addAbortListener, type Clock, type Logger, removeAbortListener } from '@keelson/core';
import type { EngineEvent } from '../api/documents.ts';
import type { EngineHttp } from '../api/engine-http.ts';
import { lines } from '../api/lines.ts';

const firstRetryMs = 100;
const lastRetryMs = 5_000;

export interface EventSourceOptions {
  readonly http: EngineHttp;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Label filter of the stream. */
  readonly filters: string;
  readonly onEvent: (event: EngineEvent) => void;
  /** Events may have been missed before this moment and come from now on. May fail; the source then begins again. */
  readonly onConnected: () => Promise<void>;
  readonly onLost: () => void;
}

/** The engine's event stream, opened again for as long as it takes whenever it ends. */
export class EventSource {
  readonly #options: EventSourceOptions;
  readonly #closing = new AbortController();

  constructor(options: EventSourceOptions) {
    this.#options = options;
  }

  /** Resolves when the first stream is open, or has failed; it goes on in the background. */
  async start(): Promise<void> {
    let first = () => {};
    const settled = new Promise<void>((resolve) => {
      first = resolve;
    });
    void this.#run(first);
    await settled;
  }

  close(): void {
    this.#closing.abort();
  }

  async #run(first: () => void): Promise<void> {
    const { logger, onLost } = this.#options;
    const { signal } = this.#closing;
    let retryMs = firstRetryMs;
    let connected = false;
    while (!signal.aborted) {
      try {
        await this.#listen(() => {
          retryMs = firstRetryMs;
          connected = true;
          first();
        });
      } catch (err) {
        if (!signal.aborted && connected) logger.warn('the events of the container engine are lost', { err });
      }
      first();
      if (signal.aborted) return;
      if (connected) onLost();
      connected = false;
      await this.#pause(retryMs);
      retryMs = Math.min(retryMs * 2, lastRetryMs);
    }
  }

  /** Until the stream ends. */
  async #listen(connected: () => void): Promise<void> {
    const stream = await this.#open();
    try {
      const reading = this.#read(stream);
      reading.catch(() => {}); // awaited below, if it comes to that
      await this.#options.onConnected();
      connected();
      await reading;
    } finally {
      stream.destroy();
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    return new Promise((resolve) => {
      const go = () => {
        cancel();
        removeAbortListener(signal, go);
        resolve();
      };
      const cancel = this.#options.clock.after(ms, go);
      addAbortListener(signal, go);
    });
  }

  #open(): Promise<IncomingMessage> {
    const { http, filters } = this.#options;
    return http.open('GET', '/events', { query: { filters }, signal: this.#closing.signal });
  }

  async #read(stream: IncomingMessage): Promise<void> {
    stream.socket.unref(); // waiting for events keeps no process alive
    for await (const line of lines(stream)) {
      const event = parse(line);
      if (event !== undefined) this.#options.onEvent(event);
    }
  }
}

function parse(line: string): EngineEvent | undefined {
  try {
    const event = JSON.parse(line) as Partial<EngineEvent>;
    return typeof event.Action === 'string' && typeof event.Actor?.ID === 'string' ? (event as EngineEvent) : undefined;
  } catch {
    return undefined;
  }
}
