import type { ApiClient, DiscoveredResource, GroupVersionResource } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';

/** One resource for each storage. Of several API versions of the same objects, only the preferred one is returned. */
export function distinctResources(resources: readonly DiscoveredResource[]): DiscoveredResource[] {
  const byStorage = new Map<string, DiscoveredResource>();
  for (const resource of resources) {
    const id = storageId(resource);
    if (!byStorage.has(id)) byStorage.set(id, resource);
  }
  return [...byStorage.values()];
}

/** An identifier for the storage of a resource. Resources with the same stored objects have the same identifier. */
export function storageId(resource: DiscoveredResource): string {
  return `${resource.storage.group}/${resource.storage.resource}`;
}

/** True for resources that can be listed, watched and deleted. */
export function isCollectable(resource: DiscoveredResource): boolean {
  return ['delete', 'list', 'watch'].every((verb) => resource.verbs.includes(verb));
}

const refreshAfterMs = 30_000;

/** The resources of the server, from API discovery. Discovery is repeated after some time and for an unknown kind. */
export class ResourceMap {
  readonly #client: ApiClient;
  readonly #clock: Clock;
  #known: readonly DiscoveredResource[] = [];
  #loadedAt = Number.NEGATIVE_INFINITY;

  readonly #refreshAfterMs: number;

  /** @param maxAgeMs 0 for callers that must not overlook a resource that was just added */
  constructor(client: ApiClient, clock: Clock, maxAgeMs = refreshAfterMs) {
    this.#client = client;
    this.#clock = clock;
    this.#refreshAfterMs = maxAgeMs;
  }

  async all(): Promise<readonly DiscoveredResource[]> {
    if (this.#clock.monotonic() - this.#loadedAt >= this.#refreshAfterMs) await this.#load();
    return this.#known;
  }

  /** The resource of an owner reference; undefined when no such kind is served. */
  async find(apiVersion: string, kind: string): Promise<DiscoveredResource | undefined> {
    const matches = (resource: DiscoveredResource) => resource.kind === kind && groupVersion(resource) === apiVersion;
    const found = (await this.all()).find(matches);
    if (found !== undefined) return found;
    await this.#load();
    return this.#known.find(matches);
  }

  async #load(): Promise<void> {
    this.#known = await this.#client.discover();
    this.#loadedAt = this.#clock.monotonic();
  }
}

function groupVersion(resource: GroupVersionResource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}
