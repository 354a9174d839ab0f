import type { ClientWatchEvent, GroupVersionResource, KindDefinition, KubeObject, Stored } from '@keelson/core';
import {
  type ResourceService,
  type ResourceWatch,
  type StoredObject,
  translateError,
  type WatchEvent,
} from '@keelson/core/internal';
import { addAbortListener, type Clock, removeAbortListener } from '@keelson/core/runtime';

/** Dependencies of an in-process watch. */
export interface InProcessWatchOptions {
  readonly clock: Clock;
  readonly resource: GroupVersionResource;
  readonly service: () => ResourceService;
  readonly read: (kind: KindDefinition, stored: StoredObject) => KubeObject;
  readonly open: (service: ResourceService, signal: AbortSignal) => Promise<ResourceWatch>;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

const chunk = 64;

/**
 * The iterator of a watch, opened by the first `next`. It ends when the caller leaves the loop, the signal aborts, the
 * timeout passes or the storage fails; a failure is thrown as the StatusError that an ERROR event would contain. The
 * end also settles a pending `next`.
 */
export class InProcessWatch<T extends KubeObject> implements AsyncIterator<ClientWatchEvent<T>, undefined> {
  readonly #options: InProcessWatchOptions;
  readonly #stop = new AbortController();
  #opened: Promise<void> | undefined;
  /** Settles a `next` that waits for events. */
  #wake: (() => void) | undefined;
  #service: ResourceService | undefined;
  #watch: ResourceWatch | undefined;
  #events: readonly WatchEvent[] = [];
  #at = 0;
  #cancelTimeout: (() => void) | undefined;
  readonly #onAbort = () => this.#end();

  constructor(options: InProcessWatchOptions) {
    this.#options = options;
  }

  /** Buffered events are returned without further promises. */
  next(): Promise<IteratorResult<ClientWatchEvent<T>, undefined>> {
    const event = this.#events[this.#at];
    if (event === undefined || event.type === 'BOOKMARK' || this.#stop.signal.aborted) return this.#next();
    this.#at += 1;
    try {
      return Promise.resolve({ done: false, value: this.#toClient(event) });
    } catch {
      this.#at -= 1;
      return this.#next();
    }
  }

  async #next(): Promise<IteratorResult<ClientWatchEvent<T>, undefined>> {
    try {
      this.#opened ??= this.#open();
      await this.#opened;
      while (!this.#stop.signal.aborted) {
        const event = this.#events[this.#at++];
        if (event !== undefined) return { done: false, value: this.#toClient(event) };
        await this.#fill();
      }
      return { done: true, value: undefined };
    } catch (error) {
      const ended = this.#stop.signal.aborted;
      this.#end();
      if (ended) return { done: true, value: undefined };
      const { group, resource } = this.#options.resource;
      throw translateError(error, { verb: 'watch', resource: { group, resource }, name: '' });
    }
  }

  async return(): Promise<IteratorResult<ClientWatchEvent<T>, undefined>> {
    this.#end();
    return { done: true, value: undefined };
  }

  async #open(): Promise<void> {
    const { signal, timeoutMs, clock } = this.#options;
    if (signal?.aborted) this.#end();
    if (this.#stop.signal.aborted) return;
    addAbortListener(signal, this.#onAbort);
    if (timeoutMs !== undefined && timeoutMs > 0) this.#cancelTimeout = clock.after(timeoutMs, this.#onAbort);
    this.#service = this.#options.service();
    const watch = await this.#options.open(this.#service, this.#stop.signal);
    if (this.#stop.signal.aborted) watch.close();
    else this.#watch = watch;
  }

  /**
   * Reads the available events, or waits for some. It then waits for the end of the event loop turn, so that the events
   * of one turn are read together.
   */
  async #fill(): Promise<void> {
    const watch = this.#watch;
    if (watch === undefined) return;
    this.#at = 0;
    this.#events = watch.read(chunk);
    if (this.#events.length > 0) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      watch.onReadable(() => setImmediate(resolve));
    });
  }

  #toClient(event: WatchEvent): ClientWatchEvent<T> {
    const kind = this.#service?.kind;
    if (kind === undefined) throw new Error('the watch returned an event before it was opened');
    if (event.type !== 'BOOKMARK')
      return { type: event.type, object: this.#options.read(kind, event.object) as Stored<T> };
    return { type: 'BOOKMARK', object: { ...event.object.value(), kind: kind.kind, apiVersion: kind.apiVersion } };
  }

  #end(): void {
    if (this.#stop.signal.aborted) return;
    removeAbortListener(this.#options.signal, this.#onAbort);
    this.#cancelTimeout?.();
    this.#events = [];
    this.#watch?.close();
    this.#stop.abort();
    this.#wake?.();
  }
}
