import type { ApiClient, DiscoveredResource } from '@keelson/core';
import { nodeOf, type ObjectNode } from './object-graph.ts';

const pageSize = 500;

/**
 * Asks the server for all dependents of an owner. The collector's own copy will not do where an owner is let go: the
 * kinds are followed one by one, so an owner's deletion may be seen before a dependent that is older, which would be
 * taken for garbage or not be waited for.
 */
export async function listDependents(
  client: ApiClient,
  resources: readonly DiscoveredResource[],
  owner: ObjectNode,
): Promise<ObjectNode[]> {
  const found: ObjectNode[] = [];
  for (const resource of resources) {
    if (owner.namespace !== undefined && !resource.namespaced) continue;
    const all = client.dynamic(resource, { metadataOnly: 'ownership' });
    const scoped = owner.namespace === undefined ? all : all.namespace(owner.namespace);
    let token: string | undefined;
    do {
      const page = await scoped.list({ limit: pageSize, ...(token === undefined ? {} : { continue: token }) });
      for (const item of page.items) {
        const node = nodeOf(resource, item);
        if (node?.owners.some(({ uid }) => uid === owner.uid)) found.push(node);
      }
      token = page.metadata.continue === '' ? undefined : page.metadata.continue;
    } while (token !== undefined);
  }
  return found;
}
