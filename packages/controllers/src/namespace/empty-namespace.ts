import type { ApiClient, DiscoveredResource, GroupVersionResource, KubeObject, ResourceClient } from '@keelson/core';
import { distinctResources, isCollectable } from '../resource-map.ts';

/** The objects that remain after the deletion of everything in a namespace. */
export interface Emptied {
  /** Resources with remaining objects, as `resource.group`, and their finalizers. */
  readonly remaining: readonly {
    readonly resource: string;
    readonly count: number;
    readonly finalizers: Readonly<Record<string, number>>;
  }[];
  /** Messages of the kinds that could not be listed or deleted. */
  readonly failures: readonly string[];
}

/** The API groups of other servers, which the client of the controllers does not reach. */
export interface OtherApis {
  /** The resources of the servers that are available now. */
  resources(): readonly DiscoveredResource[];
  /** A client for the server of a resource; the caller closes it. */
  connect(resource: GroupVersionResource): Promise<ApiClient & { close(): void }>;
}

/** Maximum number of objects deleted by one request, because the response lists all deleted objects. */
const objectsPerCall = 500;

/**
 * Deletes every object of a namespace and reports those that remain because of a grace period or a finalizer. As in
 * Kubernetes, the pods are deleted first and other objects only after the pods have ended, so that a pod never runs
 * without its network policies and quotas.
 */
export async function emptyNamespace(
  client: ApiClient,
  resources: readonly DiscoveredResource[],
  namespace: string,
  signal: AbortSignal,
  others?: OtherApis,
): Promise<Emptied> {
  const remaining: Emptied['remaining'][number][] = [];
  const failures: Emptied['failures'][number][] = [];
  const isPods = ({ group, resource }: DiscoveredResource) => group === '' && resource === 'pods';
  const elsewhere = new Set(others?.resources());
  const distinct = distinctResources([...resources, ...elsewhere]);
  for (const resource of [...distinct.filter(isPods), ...distinct.filter((other) => !isPods(other))]) {
    if (!resource.namespaced || !isCollectable(resource)) continue;
    const name = `${resource.resource}.${resource.group}`;
    let other: Awaited<ReturnType<OtherApis['connect']>> | undefined;
    try {
      if (elsewhere.has(resource)) other = await others?.connect(resource);
      const collection = (other ?? client).dynamic(resource, { metadataOnly: true }).namespace(namespace);
      const before = await collection.list({ limit: 1, signal });
      if (before.items.length === 0) continue;
      await deleteAll(collection, signal);
      const left = await collection.list({ signal });
      if (left.items.length === 0) continue;
      const finalizers: Record<string, number> = {};
      for (const finalizer of left.items.flatMap((item) => item.metadata?.finalizers ?? []))
        finalizers[finalizer] = (finalizers[finalizer] ?? 0) + 1;
      remaining.push({ resource: name, count: left.items.length, finalizers });
    } catch (error) {
      if (signal.aborted) throw error;
      failures.push((error as Error).message);
    } finally {
      other?.close();
    }
    if (isPods(resource) && remaining.length + failures.length > 0) break;
  }
  return { remaining, failures };
}

async function deleteAll(
  collection: Pick<ResourceClient<KubeObject>, 'deleteCollection'>,
  signal: AbortSignal,
): Promise<void> {
  let next: string | undefined;
  do {
    const { metadata } = await collection.deleteCollection({
      ...{ propagationPolicy: 'Background', limit: objectsPerCall, signal },
      ...(next === undefined ? {} : { continue: next }),
    });
    next = metadata.continue;
  } while (next !== undefined && next !== '');
}
