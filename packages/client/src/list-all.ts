import type { KubeObject, ListOptions, ResourceClient } from '@keelson/core';
import { isGone } from './informer-errors.ts';

export interface ListAllOptions<T extends KubeObject> {
  readonly client: ResourceClient<T>;
  /** Options of every page. */
  readonly selection: ListOptions;
  /** Options of the first page only. */
  readonly first: ListOptions;
  readonly pageSize: number;
}

/**
 * Reads a collection page by page. When the revision of the pages is compacted before the last page, the whole
 * collection is read again in one request.
 *
 * @param each called for every object; returns its key
 * @returns the keys of the objects of one revision, and its resourceVersion
 */
export async function listAll<T extends KubeObject>(
  { client, selection, first, pageSize }: ListAllOptions<T>,
  each: (object: T) => string,
): Promise<{ readonly keys: ReadonlySet<string>; readonly resourceVersion: string }> {
  let keys = new Set<string>();
  let page = await client.list({ ...selection, ...first });
  for (;;) {
    for (const object of page.items) keys.add(each(object));
    const token = page.metadata.continue ?? '';
    if (token === '') return { keys, resourceVersion: page.metadata.resourceVersion ?? '' };
    try {
      page = await client.list({ ...selection, limit: pageSize, continue: token });
    } catch (error) {
      if (!isGone(error)) throw error;
      // Objects that were read before may have been deleted since.
      keys = new Set();
      page = await client.list(selection);
    }
  }
}
