import type { ObjectPredicate, Pin, WatchEvent } from '../storage/resource-storage.ts';
import type { Key, Revision } from '../storage/store.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { KindEvent } from './event-window.ts';

/** No key and no collection begins with this character. */
const oddMark = '\0';

/**
 * The views of one kind by scope: the whole kind, one namespace, or one key. An event costs nothing for watches of
 * other namespaces and names, nor for watches that select another value of a field or label.
 */
export class WatchScopes {
  readonly #kindPrefix: string;
  readonly #scopes = new Map<string, ScopeViews>();
  /** Prefixes that are neither a key nor a collection, because they end within the name of an object. */
  readonly #odd = new Set<string>();
  #nested = 0;

  constructor(kindPrefix: string) {
    this.#kindPrefix = kindPrefix;
  }

  get empty(): boolean {
    return this.#scopes.size === 0;
  }

  /** The view of all watches with this prefix and predicate. */
  view(prefix: string, predicate: ObjectPredicate): WatchView {
    const id = this.#idOf(prefix, predicate);
    let scope = this.#scopes.get(id);
    if (scope === undefined) {
      scope = new ScopeViews();
      this.#scopes.set(id, scope);
      if (id !== this.#kindPrefix) this.#nested++;
      if (id.startsWith(oddMark)) this.#odd.add(prefix);
    }
    let view = scope.get(predicate.id);
    if (view === undefined) {
      view = new WatchView(predicate);
      scope.add(view);
    }
    return view;
  }

  /** Removes the view when no watch is left. */
  release(prefix: string, view: WatchView): void {
    if (view.members > 0) return;
    const id = this.#idOf(prefix, view.predicate);
    const scope = this.#scopes.get(id);
    if (scope?.get(view.predicate.id) !== view) return;
    scope.delete(view);
    if (!scope.empty) return;
    this.#scopes.delete(id);
    if (id.startsWith(oddMark)) this.#odd.delete(prefix);
    if (id !== this.#kindPrefix) this.#nested--;
  }

  /** Appends the event to every view that it matches, and adds views without earlier unread events to `touched`. */
  deliver(event: KindEvent, touched: WatchView[]): void {
    if (this.#scopes.size === 0) return;
    const { key } = event;
    this.#deliverTo(this.#kindPrefix, event, touched);
    if (this.#nested === 0) return;
    const slash = key.indexOf('/', this.#kindPrefix.length);
    if (slash !== -1) this.#deliverTo(key.slice(0, slash + 1), event, touched);
    this.#deliverTo(key, event, touched);
    for (const prefix of this.#odd) if (key.startsWith(prefix)) this.#deliverTo(oddMark + prefix, event, touched);
  }

  trim(startRevision: Revision): void {
    for (const scope of this.#scopes.values()) for (const view of scope.all()) view.trim(startRevision);
  }

  #deliverTo(id: Key | string, event: KindEvent, touched: WatchView[]): void {
    this.#scopes.get(id)?.visit(event, (view) => {
      const shown: WatchEvent | undefined = event.eventFor(view.predicate);
      if (shown !== undefined && view.append(shown)) touched.push(view);
    });
  }

  #idOf(prefix: string, predicate: ObjectPredicate): string {
    if (predicate.key !== undefined) return predicate.key;
    const collection =
      prefix === this.#kindPrefix || prefix.indexOf('/', this.#kindPrefix.length) === prefix.length - 1;
    return collection ? prefix : oddMark + prefix;
  }
}

/** Views whose predicates select one value of the same attribute. */
interface PinnedViews {
  readonly read: Pin['read'];
  readonly byValue: Map<string, Set<WatchView>>;
}

/**
 * The views of one scope. Views with a {@link Pin} are found by the value that an object has or had: an event of one of
 * a thousand nodes costs nothing for the watches of the others.
 */
export class ScopeViews {
  readonly #byId = new Map<string, WatchView>();
  readonly #others = new Set<WatchView>();
  readonly #pinned = new Map<string, PinnedViews>();

  get empty(): boolean {
    return this.#byId.size === 0;
  }

  get(predicateId: string): WatchView | undefined {
    return this.#byId.get(predicateId);
  }

  add(view: WatchView): void {
    const { id, pin } = view.predicate;
    this.#byId.set(id, view);
    if (pin === undefined) {
      this.#others.add(view);
      return;
    }
    let pinned = this.#pinned.get(pin.attribute);
    if (pinned === undefined) {
      pinned = { read: pin.read, byValue: new Map() };
      this.#pinned.set(pin.attribute, pinned);
    }
    const views = pinned.byValue.get(pin.value);
    if (views === undefined) pinned.byValue.set(pin.value, new Set([view]));
    else views.add(view);
  }

  delete(view: WatchView): void {
    const { id, pin } = view.predicate;
    this.#byId.delete(id);
    if (pin === undefined) {
      this.#others.delete(view);
      return;
    }
    const pinned = this.#pinned.get(pin.attribute);
    const views = pinned?.byValue.get(pin.value);
    views?.delete(view);
    if (views?.size === 0) pinned?.byValue.delete(pin.value);
    if (pinned?.byValue.size === 0) this.#pinned.delete(pin.attribute);
  }

  all(): Iterable<WatchView> {
    return this.#byId.values();
  }

  /** Calls `visit` once for every view whose predicate can match the state before or after the event. */
  visit(event: KindEvent, visit: (view: WatchView) => void): void {
    for (const view of this.#others) visit(view);
    for (const { read, byValue } of this.#pinned.values()) {
      const before = attributeOf(event.prev, read);
      const after = attributeOf(event.object, read);
      if (after !== undefined) for (const view of byValue.get(after) ?? []) visit(view);
      if (before !== undefined && before !== after) for (const view of byValue.get(before) ?? []) visit(view);
    }
  }
}

function attributeOf(object: StoredObject | undefined, read: Pin['read']): string | undefined {
  return object === undefined ? undefined : read(object.readable());
}

/** A watch that has read all events and waits for the next one. */
export interface WaitingWatch {
  /** Calls the reader, unless it has read the events in the meantime. */
  wakeIfReadable(): void;
  /** Set by the view while the watch is in its queue. */
  waiting: boolean;
}

const nothing: readonly WatchEvent[] = [];

/**
 * The log of events for all watches of one scope with one predicate, which is evaluated once for all of them. A watch
 * is a position in this log. Events that every watch has read, or that have left the event window, are dropped.
 */
export class WatchView {
  readonly predicate: ObjectPredicate;
  #log: WatchEvent[] = [];
  /** Position of `#log[0]`. */
  #base = 0;
  #members = 0;
  #queue: WaitingWatch[] = [];
  #waitingCount = 0;
  /** The piece read last and its position: watches at the same position receive the same array. */
  #piece = nothing;
  #pieceAt = -1;
  #pieceLimit = 0;
  /** Whether there are events for which the waiting watches have not been woken. */
  #touched = false;

  constructor(predicate: ObjectPredicate) {
    this.predicate = predicate;
  }

  get members(): number {
    return this.#members;
  }

  /** Position after the last event. */
  get end(): number {
    return this.#base + this.#log.length;
  }

  /** First position that can still be read. */
  get start(): number {
    return this.#base;
  }

  /** Adds a watch; returns its position. */
  join(): number {
    this.#members++;
    return this.end;
  }

  leave(watch: WaitingWatch): void {
    this.#members--;
    if (!watch.waiting) return;
    watch.waiting = false;
    this.#waitingCount--;
  }

  /** Returns true for the first event since the waiting watches were last taken. */
  append(event: WatchEvent): boolean {
    const first = !this.#touched;
    if (first) {
      this.#touched = true;
      if (this.#waitingCount === this.#members) this.#dropUntil(this.#log.length);
    }
    this.#log.push(event);
    return first;
  }

  /** Drops the events up to this revision, which have left the window. */
  trim(startRevision: Revision): void {
    let count = 0;
    while (count < this.#log.length && (this.#log[count] as WatchEvent).object.revision <= startRevision) count++;
    this.#dropUntil(count);
  }

  /** Events from `place` on, shared by watches that read the same ones. `place` must not be before `start`. */
  piece(place: number, maxEvents: number): readonly WatchEvent[] {
    if (place === this.end) return nothing;
    const full = this.#piece.length === this.#pieceLimit || place + this.#piece.length === this.end;
    if (place === this.#pieceAt && maxEvents === this.#pieceLimit && full) return this.#piece;
    const from = place - this.#base;
    this.#piece = this.#log.slice(from, from + maxEvents);
    this.#pieceAt = place;
    this.#pieceLimit = maxEvents;
    return this.#piece;
  }

  /** Adds a watch that has read all events to the queue. */
  wait(watch: WaitingWatch): void {
    if (watch.waiting) return;
    watch.waiting = true;
    this.#waitingCount++;
    this.#queue.push(watch);
  }

  /** Removes and returns all watches in the queue. */
  takeWaiting(): readonly WaitingWatch[] {
    const queue = this.#queue;
    for (const watch of queue) watch.waiting = false;
    this.#queue = [];
    this.#waitingCount = 0;
    this.#touched = false;
    return queue;
  }

  #dropUntil(index: number): void {
    if (index === 0) return;
    this.#log = this.#log.slice(index);
    this.#base += index;
    this.#piece = nothing;
    this.#pieceAt = -1;
  }
}
