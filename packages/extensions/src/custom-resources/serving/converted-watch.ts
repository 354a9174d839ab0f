import { StorageError, StorageErrorCode } from '@keelson/core';
import { PullWatch, type ResourceWatch, SharedWatchEvent, StoredObject, type WatchEvent } from '@keelson/core/internal';
import type { ConvertedStorage } from './converted-storage.ts';

/** Maximum number of events that are converted at once. */
const step = 100;

/** Events with converted objects, shared by all watches of one version. */
const shared = new WeakMap<StoredObject, Map<StoredObject, WatchEvent>>();

/** A watch whose events contain objects in the served version. */
export class ConvertedWatch extends PullWatch {
  readonly #storage: ConvertedStorage;
  readonly #inner: ResourceWatch;
  readonly #closed: () => void;
  #ready: readonly WatchEvent[] = [];
  #busy = false;
  #revision = 0;

  constructor(storage: ConvertedStorage, inner: ResourceWatch, signal: AbortSignal | undefined, closed: () => void) {
    super(signal);
    this.#storage = storage;
    this.#inner = inner;
    this.#closed = closed;
  }

  get revision(): number {
    return this.#ready.length > 0 || this.#busy ? this.#revision : this.#inner.revision;
  }

  requestBookmark(): void {
    this.#inner.requestBookmark();
  }

  /** The version is not served any more. */
  end(): void {
    this.fail(new StorageError(StorageErrorCode.Closed, 'the resource is not served any more'));
  }

  protected take(maxEvents: number): readonly WatchEvent[] {
    if (this.#ready.length === 0 && !this.#busy) this.#pull(maxEvents);
    if (this.#ready.length === 0) return [];
    const events = this.#ready.length <= maxEvents ? this.#ready : this.#ready.slice(0, maxEvents);
    this.#ready = this.#ready.length <= maxEvents ? [] : this.#ready.slice(maxEvents);
    this.#revision = events.at(-1)?.object.revision ?? this.#revision;
    return events;
  }

  protected available(): boolean {
    return this.#ready.length > 0;
  }

  protected idle(): void {
    if (this.#busy) return;
    this.#inner.onReadable(() => {
      if (this.closed || this.#busy || this.#ready.length > 0) return this.wakeIfReadable();
      this.#pull(step);
      if (!this.#busy) this.wakeIfReadable();
    });
  }

  protected dispose(): void {
    this.#inner.close();
    this.#ready = [];
    this.#closed();
  }

  #pull(maxEvents: number): void {
    let events: readonly WatchEvent[];
    try {
      events = this.#inner.read(maxEvents);
    } catch (error) {
      this.fail(error);
      return;
    }
    if (events.length === 0) return;
    const now = this.#storage.convertedNow(events.map(({ object }) => object));
    if (now !== undefined) {
      this.#ready = this.#withObjects(events, now);
      return;
    }
    this.#busy = true;
    const changes = events.filter(({ type }) => type !== 'BOOKMARK').map(({ object }) => object);
    this.#storage.converted(changes).then(
      (objects) => {
        this.#busy = false;
        let next = 0;
        const all = events.map(({ type, object }) => (type === 'BOOKMARK' ? object : (objects[next++] ?? object)));
        this.#ready = this.#withObjects(events, all);
        this.wakeIfReadable();
      },
      (error: unknown) => {
        this.#busy = false;
        this.fail(error);
      },
    );
  }

  /**
   * Returns the same array when nothing changes, because the array identifies encoded events that several watches
   * share.
   */
  #withObjects(events: readonly WatchEvent[], objects: readonly StoredObject[]): readonly WatchEvent[] {
    const changed = events.map((event, i) => {
      const object = objects[i] ?? event.object;
      if (event.type === 'BOOKMARK') return this.#bookmark(event);
      return object === event.object ? event : eventOf(event, object);
    });
    return changed.every((event, i) => event === events[i]) ? events : changed;
  }

  /** Bookmarks are converted here, because the watch cache sends the same bookmarks to watches of all versions. */
  #bookmark(event: WatchEvent): WatchEvent {
    const { apiVersion, kind } = this.#storage.conversion.served;
    const value = event.object.value();
    if (value.apiVersion === apiVersion && value.kind === kind) return event;
    const json = Buffer.from(JSON.stringify({ ...value, kind, apiVersion }));
    const bookmark = new SharedWatchEvent('BOOKMARK', new StoredObject('', event.object.revision, 0, json));
    return event.initialEventsEnd ? Object.assign(bookmark, { initialEventsEnd: true }) : bookmark;
  }
}

function eventOf(event: WatchEvent, object: StoredObject): WatchEvent {
  let events = shared.get(event.object);
  if (events === undefined) {
    events = new Map();
    shared.set(event.object, events);
  }
  const known = events.get(object);
  if (known?.type === event.type) return known;
  const made = new SharedWatchEvent(event.type, object);
  events.set(object, made);
  return made;
}
