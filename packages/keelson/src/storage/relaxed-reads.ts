import type { GroupVersionResource, KindDefinition } from '@keelson/core';
import type { ResourceRegistry, ResourceService, SelectParameters } from '@keelson/core/internal';
import type { ReadMode } from '../config/storage-choice.ts';

/** The resourceVersion of reads from the cache. */
const cached = '0';

function relaxedList(parameters: SelectParameters): SelectParameters {
  const named = parameters.resourceVersion !== '' || parameters.continue || parameters.resourceVersionMatch;
  return named ? parameters : { ...parameters, resourceVersion: cached };
}

function relaxed(service: ResourceService): ResourceService {
  return {
    kind: service.kind,
    get: (context, target, parameters) =>
      service.get(
        context,
        target,
        parameters.resourceVersion === '' ? { ...parameters, resourceVersion: cached } : parameters,
      ),
    list: (context, target, parameters) => service.list(context, target, relaxedList(parameters)),
    create: (...call) => service.create(...call),
    watch: (...call) => service.watch(...call),
    update: (...call) => service.update(...call),
    patch: (...call) => service.patch(...call),
    delete: (...call) => service.delete(...call),
    deleteCollection: (...call) => service.deleteCollection(...call),
    getSubresource: (...call) => service.getSubresource(...call),
    updateSubresource: (...call) => service.updateSubresource(...call),
    patchSubresource: (...call) => service.patchSubresource(...call),
    createSubresource: (...call) => service.createSubresource(...call),
    connect: (...call) => service.connect(...call),
  };
}

/**
 * The registry for requests over HTTP when a store has the setting `reads: any`: a get or list of its kinds without
 * resourceVersion returns the cached state. Writes, deletions of collections, watches and calls within the server stay
 * consistent, because controllers decide about deletions by what they read.
 */
export function relaxedReads(
  registry: ResourceRegistry,
  readsOf: (kind: KindDefinition) => ReadMode,
): ResourceRegistry {
  const made = new WeakMap<ResourceService, ResourceService>();
  return {
    kinds: () => registry.kinds(),
    get generation() {
      return registry.generation;
    },
    find: (resource: GroupVersionResource) => {
      const service = registry.find(resource);
      if (service === undefined || service.kind.virtual || readsOf(service.kind) === 'consistent') return service;
      let view = made.get(service);
      if (view === undefined) {
        view = relaxed(service);
        made.set(service, view);
      }
      return view;
    },
    add: (kind) => registry.add(kind),
    remove: (kind) => registry.remove(kind),
    replace: (removed, added) => registry.replace(removed, added),
  };
}
