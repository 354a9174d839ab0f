import type { IncomingMessage } from 'node:http';
import { addAbortListener, type Clock, type Logger, removeAbortListener } from '@keelson/core/runtime';
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
  /**
   * Called after every connect. Earlier events may have been missed; later events are delivered. When the returned
   * promise rejects, the source reconnects.
   */
  readonly onConnected: () => Promise<void>;
  readonly onDisconnected: () => void;
}

/** The event stream of the engine, which is opened again whenever it ends. */
export class EventSource {
  readonly #options: EventSourceOptions;
  readonly #closing = new AbortController();

  constructor(options: EventSourceOptions) {
    this.#options = options;
  }

  /** Resolves when the first stream is open or has failed; reconnecting continues in the background. */
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
    const { logger, onDisconnected } = this.#options;
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
        if (!signal.aborted && connected) logger.warn('the event stream of the container engine failed', { err });
      }
      first();
      if (signal.aborted) return;
      if (connected) onDisconnected();
      connected = false;
      await this.#pause(retryMs);
      retryMs = Math.min(retryMs * 2, lastRetryMs);
    }
  }

  /** Reads events until the stream ends. */
  async #listen(connected: () => void): Promise<void> {
    const stream = await this.#open();
    try {
      const reading = this.#read(stream);
      reading.catch(() => {}); // awaited below, unless `onConnected` rejects first
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
      const resume = () => {
        cancel();
        removeAbortListener(signal, resume);
        resolve();
      };
      const cancel = this.#options.clock.after(ms, resume);
      addAbortListener(signal, resume);
    });
  }

  #open(): Promise<IncomingMessage> {
    const { http, filters } = this.#options;
    return http.open('GET', '/events', { query: { filters }, signal: this.#closing.signal });
  }

  async #read(stream: IncomingMessage): Promise<void> {
    stream.socket.unref(); // waiting for events must not keep the process alive
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
