import type { ClientWatchEvent, KubeObject, ResourceClient } from '@keelson/core';
import { metadataOf } from './http/object-forms.ts';

/** Not a generator, which would hold back its `return` as long as it waits for an event. */
function reduced(events: AsyncIterable<ClientWatchEvent<KubeObject>>): AsyncIterable<ClientWatchEvent<KubeObject>> {
  return {
    [Symbol.asyncIterator]: () => {
      const iterator = events[Symbol.asyncIterator]();
      return {
        next: async () => {
          const { done, value } = await iterator.next();
          return done ? { done, value } : { done: false, value: { type: value.type, object: metadataOf(value.object) } };
        },
        return: async () => {
          await iterator.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** The same client, whose reads and watches hand out apiVersion, kind and metadata alone. */
export function metadataOnlyClient(client: ResourceClient<KubeObject>): ResourceClient<KubeObject> {
  return {
    resourceName: client.resourceName,
    namespace: (namespace) => metadataOnlyClient(client.namespace(namespace)),
    get: async (name, options) => metadataOf(await client.get(name, options)),
    list: async (options) => {
      const list = await client.list(options);
      return { ...list, items: list.items.map(metadataOf) };
    },
    watch: (options) => reduced(client.watch(options)),
    create: (object, options) => client.create(object, options),
    update: (object, options) => client.update(object, options),
    patch: (name, type, patch, options) => client.patch(name, type, patch, options),
    delete: (name, options) => client.delete(name, options),
    deleteCollection: (options) => client.deleteCollection(options),
    getSubresource: (name, subresource) => client.getSubresource(name, subresource),
    updateSubresource: (name, subresource, body, options) => client.updateSubresource(name, subresource, body, options),
    patchSubresource: (name, subresource, type, patch, options) =>
      client.patchSubresource(name, subresource, type, patch, options),
    createSubresource: (name, subresource, body, options) => client.createSubresource(name, subresource, body, options),
  };
}
