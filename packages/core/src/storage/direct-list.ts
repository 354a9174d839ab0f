import { ObjectList } from './object-list.ts';
import type { ObjectPredicate, StoredList } from './resource-storage.ts';
import type { ObjectSource } from './storage-memory.ts';
import { type Key, prefixRange, type Revision, type Store } from './store.ts';
import { StoredObject } from './stored-object.ts';

/** Largest page asked of a store while a selector drops most of what it returns. */
const largestPage = 10_000;

export interface DirectListRequest {
  readonly source: ObjectSource;
  readonly prefix: string;
  readonly predicate: ObjectPredicate;
  /** 0 = all. */
  readonly limit: number;
  /** Undefined = the latest state. */
  readonly revision: Revision | undefined;
  readonly after: Key | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Reads a page from the store: pages of the store are read until enough objects match, all from one state. */
export async function listDirectly(store: Store, request: DirectListRequest): Promise<StoredList> {
  const { predicate, limit, signal } = request;
  if (predicate.key !== undefined) return listOne(store, predicate.key, request);
  const { end } = prefixRange(request.prefix);
  const objects: StoredObject[] = [];
  let { revision, after } = request;
  let pageLimit = limit;
  for (;;) {
    const start = after === undefined ? { start: request.prefix } : { start: after, startExclusive: true };
    const options = {
      ...(revision === undefined ? {} : { revision }),
      ...(pageLimit === 0 ? {} : { limit: pageLimit }),
      ...(signal === undefined ? {} : { signal }),
    };
    let more = false;
    for await (const chunk of store.list({ ...start, end }, options)) {
      revision ??= chunk.revision;
      more = chunk.more;
      for (const [i, entry] of chunk.entries.entries()) {
        after = entry.key;
        const object = StoredObject.fromEntry(entry, request.source).readable();
        if (!predicate.everything && !predicate.matches(object)) continue;
        objects.push(object);
        if (limit === 0 || objects.length < limit) continue;
        if (!more && i === chunk.entries.length - 1) return new ObjectList(objects, revision);
        return pageOf(store, objects, revision, after, end, predicate.everything);
      }
    }
    if (!more || pageLimit === 0 || after === undefined) return new ObjectList(objects, revision ?? 0);
    pageLimit = Math.min(pageLimit * 2, largestPage);
  }
}

async function pageOf(
  store: Store,
  objects: readonly StoredObject[],
  revision: Revision,
  after: Key,
  end: Key,
  countable: boolean,
): Promise<StoredList> {
  const next = { revision, after };
  if (!countable) return new ObjectList(objects, revision, next);
  const rest = await store.count({ start: after, startExclusive: true, end }, { revision });
  return new ObjectList(objects, revision, next, rest.exact ? rest.count : undefined);
}

async function listOne(store: Store, key: Key, request: DirectListRequest): Promise<StoredList> {
  const { prefix, predicate, revision, after, signal } = request;
  const read = await store.get(key, {
    ...(revision === undefined ? {} : { revision }),
    ...(signal === undefined ? {} : { signal }),
  });
  const object = read.entry === undefined ? undefined : StoredObject.fromEntry(read.entry, request.source).readable();
  const shown = object !== undefined && key.startsWith(prefix) && after !== key && predicate.matches(object);
  return new ObjectList(shown ? [object] : [], revision ?? read.revision);
}
