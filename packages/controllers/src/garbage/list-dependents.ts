import type { ApiClient, DiscoveredResource } from '@keelson/core';
import { nodeOf, type ObjectNode } from './object-graph.ts';

const pageSize = 500;

/**
 * Lists the dependents of an owner that are of one kind, from the server. The cached state is not sufficient before an
 * owner is released: because kinds are watched separately, the deletion of an owner may be observed before the creation
 * of a dependent. Such a dependent would be deleted instead of orphaned, or the owner would not wait for it.
 */
export async function listDependents(
  client: ApiClient,
  resource: DiscoveredResource,
  owner: ObjectNode,
): Promise<readonly ObjectNode[]> {
  if (owner.namespace !== undefined && !resource.namespaced) return [];
  const found: ObjectNode[] = [];
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
  return found;
}
