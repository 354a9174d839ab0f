import { ByteBudget, type Droppable } from './byte-budget.ts';
import type { EventRepresentation, WatchEvent, WatchEventType } from './resource-storage.ts';
import type { Revision } from './store.ts';
import { StoredObject } from './stored-object.ts';

/** The frames of all events together; a frame dropped before a slow watcher came for it is made again. */
const frames = new ByteBudget(16 * 1024 * 1024);

/** An event whose frames are made once for all watchers that see it. */
export class SharedWatchEvent implements WatchEvent, Droppable {
  readonly type: WatchEventType;
  readonly object: StoredObject;
  // The first representation has its own place: nearly always there is only one.
  #id: string | undefined = undefined;
  #frame: Buffer | undefined = undefined;
  #others: Map<string, Buffer> | undefined = undefined;

  constructor(type: WatchEventType, object: StoredObject) {
    this.type = type;
    this.object = object;
  }

  encoded(representation: EventRepresentation): Buffer {
    if (this.#id === representation.id && this.#frame !== undefined) return this.#frame;
    const known = this.#others?.get(representation.id);
    if (known !== undefined) return known;
    const frame = representation.encode(this.type, this.object);
    if (this.#frame === undefined) {
      this.#id = representation.id;
      this.#frame = frame;
    } else {
      this.#others ??= new Map();
      this.#others.set(representation.id, frame);
    }
    frames.add(this, frame.length);
    return frame;
  }

  /** @internal */
  drop(): void {
    this.#frame = undefined;
    this.#others = undefined;
  }
}

/** An event of the initial state. Each watcher has its own, at its own time, so nothing is kept. */
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

/** What the object of a bookmark says about itself. */
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
  return new EndOfInitialEvents('BOOKMARK', new StoredObject('', object.revision, 0, Buffer.from(json)));
}

/** A bookmark: an object with nothing but its type and a resourceVersion. */
export function bookmarkEvent(stamp: BookmarkStamp, revision: Revision, initialEventsEnd = false): SharedWatchEvent {
  const json = JSON.stringify({
    kind: stamp.kind,
    apiVersion: stamp.apiVersion,
    metadata: {
      resourceVersion: String(revision),
      ...(initialEventsEnd ? { annotations: { [initialEventsEndAnnotation]: 'true' } } : {}),
    },
  });
  const object = new StoredObject('', revision, 0, Buffer.from(json));
  return initialEventsEnd ? new EndOfInitialEvents('BOOKMARK', object) : new SharedWatchEvent('BOOKMARK', object);
}
