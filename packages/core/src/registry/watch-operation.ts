import type { RequestContext } from '../meta/request-context.ts';
import type { ResourceWatch } from '../storage/resource-storage.ts';
import { targetPrefix } from './object-target.ts';
import { selectionOf } from './predicate.ts';
import { watchPoint } from './read-point.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { SelectParameters, Target } from './resource-service.ts';

/** Watch of a collection or of one object: see docs/reference/api-rules.md#start-of-a-watch. */
export class WatchOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ResourceWatch> {
    const { kind, storage } = this.#binding;
    this.#binding.requireVerb('watch');
    const point = watchPoint(parameters);
    const { predicate } = selectionOf(kind, target, parameters);
    const from =
      point === 'now' ? ({ start: 'changesAfter', revision: await storage.currentRevision() } as const) : point;
    return storage.watch(targetPrefix(this.#binding, target), {
      predicate,
      from,
      ...(parameters.allowWatchBookmarks ? { bookmarks: true } : {}),
      ...(context.signal ? { signal: context.signal } : {}),
    });
  }
}
