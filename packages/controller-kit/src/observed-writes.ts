import { isOlderVersion, keyOf } from '@keelson/client';
import type { ApiClient, GroupVersionResource, KubeObject, ResourceClient, Status } from '@keelson/core';
import type { SharedInformer } from './shared-informer.ts';

/** Returns the shared informer of a resource, if there is one. */
export type FindInformer = (resource: GroupVersionResource) => SharedInformer | undefined;

/** A write that must be visible in an informer before its controller decides again. */
interface Expectation {
  readonly informer: SharedInformer;
  readonly visible: () => boolean;
}

/**
 * The writes of one run. Informers lag behind writes, so a controller that decided again from an older copy would
 * create or delete twice.
 */
export class ObservedWrites {
  readonly #find: FindInformer;
  readonly #expected: Expectation[] = [];

  constructor(find: FindInformer) {
    this.#find = find;
  }

  /** A client whose writes are recorded here. */
  client(client: ApiClient): ApiClient {
    return {
      resource: (kind) => this.#recorded(client.resource(kind)),
      dynamic: (resource, options) => this.#recorded(client.dynamic(resource, options)),
      discover: () => client.discover(),
    };
  }

  /** Waits until the informers have observed all writes. */
  async visible(signal: AbortSignal): Promise<void> {
    for (const { informer, visible } of this.#expected.splice(0)) await informer.until(visible, signal);
  }

  #recorded<T extends KubeObject>(resource: ResourceClient<T>, namespace = ''): ResourceClient<T> {
    const written = async <R extends KubeObject | Status>(call: Promise<R>): Promise<R> => {
      const answer = await call;
      const { resourceVersion } = (answer as KubeObject).metadata ?? {};
      const informer = this.#find(resource.resourceName);
      if (informer !== undefined && resourceVersion !== undefined && resourceVersion !== '')
        this.#expected.push({
          informer,
          visible: () => !isOlderVersion(informer.informer.resourceVersion, resourceVersion),
        });
      return answer;
    };
    const deleted = async (name: string, call: Promise<T | Status>): Promise<T | Status> => {
      const informer = this.#find(resource.resourceName);
      const key = keyOf({ metadata: { namespace, name } });
      const uid = informer?.get(key)?.metadata?.uid;
      const answer = await written(call);
      if (informer !== undefined && uid !== undefined && (answer as KubeObject).metadata?.resourceVersion === undefined)
        this.#expected.push({ informer, visible: () => informer.get(key)?.metadata?.uid !== uid });
      return answer;
    };
    return {
      resourceName: resource.resourceName,
      namespace: (name) => this.#recorded(resource.namespace(name), name),
      create: (object, options) => written(resource.create(object, options)),
      get: (name, options) => resource.get(name, options),
      list: (options) => resource.list(options),
      update: (object, options) => written(resource.update(object, options)),
      patch: (name, type, patch, options) => written(resource.patch(name, type, patch, options)),
      delete: (name, options) => deleted(name, resource.delete(name, options)),
      deleteCollection: (options) => resource.deleteCollection(options),
      watch: (options) => resource.watch(options),
      getSubresource: (name, subresource) => resource.getSubresource(name, subresource),
      updateSubresource: (name, subresource, body, options) =>
        written(resource.updateSubresource(name, subresource, body, options)),
      patchSubresource: (name, subresource, type, patch, options) =>
        written(resource.patchSubresource(name, subresource, type, patch, options)),
      createSubresource: (name, subresource, body, options) =>
        written(resource.createSubresource(name, subresource, body, options)),
    };
  }
}
