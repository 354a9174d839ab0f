import type { ApiClient, KubeObject, ResourceClient } from '@keelson/core';

/** A write of a client. */
export interface ClientWrite {
  readonly verb: 'create' | 'update' | 'patch' | 'delete';
  /** The plural of the resource. */
  readonly resource: string;
  readonly name: string;
  readonly subresource?: string;
}

/** Called with each write before and after it; a rejection before it prevents the write. */
export interface Interception {
  readonly before?: (write: ClientWrite) => Promise<void> | void;
  readonly after?: (write: ClientWrite) => Promise<void> | void;
  /** Called before each event of a watch, which it delays. */
  readonly event?: (resource: string) => Promise<void>;
}

/** A client whose writes can be observed, delayed and rejected. */
export function interceptedClient(client: ApiClient, interception: Interception): ApiClient {
  return {
    resource: (kind) => intercepted(client.resource(kind), interception),
    dynamic: (resource, options) => intercepted(client.dynamic(resource, options), interception),
    discover: () => client.discover(),
  };
}

function intercepted<T extends KubeObject>(client: ResourceClient<T>, interception: Interception): ResourceClient<T> {
  const { before, after, event } = interception;
  const { resource } = client.resourceName;
  const write = async <R>(verb: ClientWrite['verb'], name: string, call: () => Promise<R>, subresource?: string) => {
    const description = { verb, resource, name, ...(subresource === undefined ? {} : { subresource }) };
    await before?.(description);
    const answer = await call();
    await after?.(description);
    return answer;
  };
  const nameOf = (object: KubeObject) => object.metadata?.name ?? object.metadata?.generateName ?? '';
  return {
    resourceName: client.resourceName,
    namespace: (name) => intercepted(client.namespace(name), interception),
    get: (name, options) => client.get(name, options),
    list: (options) => client.list(options),
    watch: (options) =>
      event === undefined ? client.watch(options) : delayed(client.watch(options), () => event(resource)),
    getSubresource: (name, subresource) => client.getSubresource(name, subresource),
    deleteCollection: (options) => client.deleteCollection(options),
    create: (object, options) => write('create', nameOf(object), () => client.create(object, options)),
    update: (object, options) => write('update', nameOf(object), () => client.update(object, options)),
    patch: (name, type, patch, options) => write('patch', name, () => client.patch(name, type, patch, options)),
    apply: (configuration, options) =>
      write('patch', nameOf(configuration as T), () => client.apply(configuration, options)),
    delete: (name, options) => write('delete', name, () => client.delete(name, options)),
    updateSubresource: (name, subresource, body, options) =>
      write('update', name, () => client.updateSubresource(name, subresource, body, options), subresource),
    patchSubresource: (name, subresource, type, patch, options) =>
      write('patch', name, () => client.patchSubresource(name, subresource, type, patch, options), subresource),
    createSubresource: (name, subresource, body, options) =>
      write('create', name, () => client.createSubresource(name, subresource, body, options), subresource),
  };
}

async function* delayed<E>(events: AsyncIterable<E>, delay: () => Promise<void>): AsyncIterable<E> {
  for await (const event of events) {
    await delay();
    yield event;
  }
}
