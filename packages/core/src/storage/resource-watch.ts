import { StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { addAbortListener, removeAbortListener } from '../meta/abort-listeners.ts';
import type { Droppable } from './byte-budget.ts';
import type {
  EventRepresentation,
  ObjectPredicate,
  ResourceWatch,
  WatchEvent,
  WatchEventType,
} from './resource-storage.ts';
import type { StorageMemory } from './storage-memory.ts';
import type { Revision } from './store.ts';
import { StoredObject } from './stored-object.ts';

const chunk = 256;

/** The common part of every {@link ResourceWatch}: it notifies the reader once, ends once, and can be iterated. */
export abstract class PullWatch implements ResourceWatch {
  #callback: (() => void) | undefined = undefined;
  #failure: StorageError | undefined = undefined;
  #closed = false;
  #signal: AbortSignal | undefined;
  #onAbort: (() => void) | undefined;
  #release: (() => void) | undefined = undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    if (signal !== undefined) {
      this.#onAbort = () => this.close();
      addAbortListener(signal, this.#onAbort);
    }
  }

  abstract readonly revision: Revision;
  abstract requestBookmark(): void;
  /** Events that are available now. */
  protected abstract take(maxEvents: number): readonly WatchEvent[];
  /** True when `take` would return events, or must be called to continue the search for some. */
  protected abstract available(): boolean;
  /** Called when the reader has found nothing and waits. */
  protected abstract idle(): void;
  /** Releases the resources of the watch; called once. */
  protected abstract dispose(): void;

  get closed(): boolean {
    return this.#closed;
  }

  read(maxEvents: number): readonly WatchEvent[] {
    if (this.#closed) return [];
    const events = this.take(maxEvents);
    if (events.length === 0 && this.#failure !== undefined && !this.available()) {
      const failure = this.#failure;
      this.close();
      throw failure;
    }
    return events;
  }

  onReadable(callback: () => void): void {
    if (this.#closed) return;
    this.#callback = callback;
    if (this.#failure !== undefined || this.available()) setImmediate(() => this.wakeIfReadable());
    else this.idle();
  }

  /** Calls the waiting reader, if there is one. */
  wake(): void {
    const callback = this.#callback;
    if (callback === undefined) return;
    this.#callback = undefined;
    callback();
  }

  /** Calls the waiting reader, unless it has read everything by itself in the meantime. */
  wakeIfReadable(): void {
    if (this.#closed || this.#callback === undefined) return;
    if (this.#failure !== undefined || this.available()) this.wake();
    else this.idle();
  }

  /** Ends the watch once everything before has been read. */
  fail(error: unknown): void {
    if (this.#closed || this.#failure !== undefined) return;
    this.#failure =
      error instanceof StorageError
        ? error
        : new StorageError(StorageErrorCode.Unavailable, 'the watch cannot continue', { cause: error });
    this.wake();
  }

  protected get failed(): boolean {
    return this.#failure !== undefined;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#callback = undefined;
    if (this.#onAbort !== undefined) removeAbortListener(this.#signal, this.#onAbort);
    this.#signal = undefined;
    this.#onAbort = undefined;
    this.dispose();
    this.#release?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    try {
      while (!this.#closed) {
        const events = this.read(chunk);
        yield* events;
        if (events.length === 0) await this.#readable();
      }
    } finally {
      this.close();
    }
  }

  #readable(): Promise<void> {
    return new Promise((resolve) => {
      this.#release = resolve;
      this.onReadable(resolve);
      if (this.#closed) resolve();
    });
  }
}

const joined = new WeakMap<readonly WatchEvent[], Map<string, Buffer>>();

/**
 * The frames of events that were read together, as one buffer. Watchers at the same place of the same history read the
 * same array, so the joined buffer is made once for all of them; it lives as long as the array.
 */
export function encodeEvents(events: readonly WatchEvent[], representation: EventRepresentation): Buffer {
  const [first] = events;
  if (first === undefined) return Buffer.alloc(0);
  if (events.length === 1) return first.encoded(representation);
  let forms = joined.get(events);
  if (forms === undefined) {
    forms = new Map();
    joined.set(events, forms);
  }
  let buffer = forms.get(representation.id);
  if (buffer === undefined) {
    buffer = Buffer.concat(events.map((event) => event.encoded(representation)));
    forms.set(representation.id, buffer);
  }
  return buffer;
}

/**
 * An event whose frames are encoded once for all watchers that receive it. A frame that is dropped for lack of memory
 * before a slow watcher has received it is encoded again.
 */
export class SharedWatchEvent implements WatchEvent, Droppable {
  readonly type: WatchEventType;
  readonly object: StoredObject;
  // The first representation has fields of its own; a map is created only for further ones, which are rare.
  #id: string | undefined = undefined;
  #frame: Buffer | undefined = undefined;
  #others: Map<string, Buffer> | undefined = undefined;

  constructor(type: WatchEventType, object: StoredObject) {
    this.type = type;
    this.object = object;
  }

  encoded(representation: EventRepresentation): Buffer {
    if (this.#id === representation.id && this.#frame !== undefined) return this.#frame;
    const other = this.#others?.get(representation.id);
    if (other !== undefined) return other;
    const frame = representation.encode(this.type, this.object);
    const budget = this.object.source?.memory?.watchFrames;
    if (budget === undefined) return frame;
    if (this.#frame === undefined) {
      this.#id = representation.id;
      this.#frame = frame;
    } else {
      this.#others ??= new Map();
      this.#others.set(representation.id, frame);
    }
    budget.add(this, frame.length);
    return frame;
  }

  /** @internal */
  drop(): void {
    this.#frame = undefined;
    this.#others = undefined;
  }
}

/** An event of the initial state. Each watcher has its own, at its own time, so its frame is not kept. */
export class InitialWatchEvent implements WatchEvent {
  readonly type = 'ADDED';
  readonly object: StoredObject;

  constructor(object: StoredObject) {
    this.object = object;
  }

  encoded(representation: EventRepresentation): Buffer {
    return representation.encode(this.type, this.object);
  }
}

class EndOfInitialEvents extends SharedWatchEvent {
  readonly initialEventsEnd = true;
}

/** Type fields of the object of a bookmark. */
export interface BookmarkStamp {
  readonly kind: string;
  readonly apiVersion: string;
}

/** Annotation of the bookmark that ends the initial events: see docs/reference/api-rules.md#start-of-a-watch. */
const initialEventsEndAnnotation = 'k8s.io/initial-events-end';

/** Annotation with an empty list in the form of the request; clients build the list from it (KEP-3157). */
const listBlueprintAnnotation = 'kubernetes.io/initial-events-list-blueprint';

/** The bookmark that ends the initial events, with the bytes of an empty list. It is for one watcher. */
export function withListBlueprint({ object }: WatchEvent, emptyList: Buffer): WatchEvent {
  const value = object.value();
  const annotations = { ...value.metadata?.annotations, [listBlueprintAnnotation]: emptyList.toString('base64') };
  const json = JSON.stringify({ ...value, metadata: { ...value.metadata, annotations } });
  return new EndOfInitialEvents('BOOKMARK', new StoredObject('', object.revision, 0, Buffer.from(json), object.source));
}

/** A bookmark: an object with nothing but its type and a resourceVersion. */
export function bookmarkEvent(
  stamp: BookmarkStamp,
  revision: Revision,
  options: { readonly memory?: StorageMemory | undefined; readonly initialEventsEnd?: boolean } = {},
): SharedWatchEvent {
  const { memory, initialEventsEnd = false } = options;
  const json = JSON.stringify({
    kind: stamp.kind,
    apiVersion: stamp.apiVersion,
    metadata: {
      resourceVersion: String(revision),
      ...(initialEventsEnd ? { annotations: { [initialEventsEndAnnotation]: 'true' } } : {}),
    },
  });
  const source = memory && { sharedValues: false, memory };
  const object = new StoredObject('', revision, 0, Buffer.from(json), source);
  return initialEventsEnd ? new EndOfInitialEvents('BOOKMARK', object) : new SharedWatchEvent('BOOKMARK', object);
}

/**
 * What a watcher with this predicate sees of a change from `prev` to `current`, or undefined when it sees nothing.
 * Objects that begin to match appear as ADDED, objects that cease to match as DELETED.
 */
export function watchedChange(
  predicate: ObjectPredicate,
  prev: StoredObject | undefined,
  current: StoredObject | undefined,
): WatchEventType | undefined {
  const before = prev !== undefined && (predicate.everything || predicate.matches(prev));
  const after = current !== undefined && (predicate.everything || predicate.matches(current));
  if (after) return before ? 'MODIFIED' : 'ADDED';
  return before ? 'DELETED' : undefined;
}

/**
 * The state before a change, for an event. When its bytes are damaged the change cannot be shown, and the watch ends
 * with `Compacted`: its client lists again and receives the state after the change.
 */
export function shownBefore(prev: StoredObject | undefined, revision: Revision): StoredObject | undefined {
  if (!prev?.corrupt) return prev;
  throw new StorageError(
    StorageErrorCode.Compacted,
    `the state of ${prev.key} before revision ${revision} is damaged`,
    {
      key: prev.key,
      revision,
    },
  );
}
