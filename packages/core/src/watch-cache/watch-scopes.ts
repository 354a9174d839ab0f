import type { ObjectPredicate, WatchEvent } from '../storage/resource-storage.ts';
import type { Key, Revision } from '../storage/store.ts';
import type { KindEvent } from './kind-event.ts';
import { ScopeViews } from './scope-views.ts';
import { WatchView } from './watch-view.ts';

/** No key and no collection begins like this. */
const oddMark = '\0';

/**
 * The views of one kind, found by what they can see: everything of the kind, one namespace, one key. An event costs
 * nothing for watchers of other namespaces and names, nor for those who select another value of a field or label.
 */
export class WatchScopes {
  readonly #kindPrefix: string;
  readonly #scopes = new Map<string, ScopeViews>();
  /** Prefixes that end within a name. */
  readonly #odd = new Set<string>();
  #nested = 0;

  constructor(kindPrefix: string) {
    this.#kindPrefix = kindPrefix;
  }

  get empty(): boolean {
    return this.#scopes.size === 0;
  }

  /** The view of all watchers with this prefix and predicate. */
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

  /** Forgets the view when nobody is left. */
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

  /** Appends the event to every view that sees it, and adds those to `touched`. */
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
      const seen: WatchEvent | undefined = event.seenBy(view.predicate);
      if (seen !== undefined && view.append(seen)) touched.push(view);
    });
  }

  #idOf(prefix: string, predicate: ObjectPredicate): string {
    if (predicate.key !== undefined) return predicate.key;
    const collection =
      prefix === this.#kindPrefix || prefix.indexOf('/', this.#kindPrefix.length) === prefix.length - 1;
    return collection ? prefix : oddMark + prefix;
  }
}
