import type { Pin } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { KindEvent } from './kind-event.ts';
import type { WatchView } from './watch-view.ts';

/** Views whose predicates are pinned to values of the same attribute. */
interface PinnedViews {
  readonly read: Pin['read'];
  readonly byValue: Map<string, Set<WatchView>>;
}

/**
 * The views of one scope. Those with a {@link Pin} are found by the value that an object has, or had: an event for one
 * of a thousand nodes costs nothing for the watchers of the others.
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

  /** Hands every view to `visit`, once, whose predicate can match the state before the event or the one after it. */
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
