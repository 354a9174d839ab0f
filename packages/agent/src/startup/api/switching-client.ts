import type { HttpApiClient } from '@keelson/client';
import type {
  ApiClient,
  ClientWatchEvent,
  DiscoveredResource,
  KindDefinition,
  KubeObject,
  ResourceClient,
  WatchOptions,
} from '@keelson/core';
import { isStatusError } from '@keelson/core';

/** Selects the client to use, and another one when the server rejects the content type of its requests. */
export interface ClientChoice {
  /**
   * Returns the client to use.
   *
   * @throws ConnectionError while there is none
   */
  current(): Promise<HttpApiClient>;
  /** Called when the server rejects the content type of this client; returns true when another client is available. */
  refused(client: HttpApiClient): boolean;
}

/** True for 406 and 415: the server rejects the content type, not the request. */
function refusesContentType(error: unknown): boolean {
  return isStatusError(error) && (error.code === 406 || error.code === 415);
}

/** Returns an {@link ApiClient} that sends each request with the client that is current at that time. */
export function switchingClient(choice: ClientChoice): ApiClient {
  return {
    resource: <T extends KubeObject>(kind: KindDefinition<T>) => {
      const { group, version, names } = kind;
      const name = { group, version, resource: names.plural };
      return switchingResource<T>(choice, name, (client) => client.resource<T>(kind));
    },
    dynamic: (name, options) => switchingResource(choice, name, (client) => client.dynamic(name, options)),
    discover: () => run(choice, (client): Promise<readonly DiscoveredResource[]> => client.discover()),
  };
}

async function run<R>(choice: ClientChoice, call: (client: HttpApiClient) => Promise<R>): Promise<R> {
  for (;;) {
    const client = await choice.current();
    try {
      return await call(client);
    } catch (error) {
      if (!refusesContentType(error) || !choice.refused(client)) throw error;
    }
  }
}

function switchingResource<T extends KubeObject>(
  choice: ClientChoice,
  resourceName: ResourceClient<T>['resourceName'],
  pick: (client: HttpApiClient) => ResourceClient<T>,
): ResourceClient<T> {
  const call = <R>(operation: (resource: ResourceClient<T>) => Promise<R>) =>
    run(choice, (client) => operation(pick(client)));

  async function* watch(options?: WatchOptions): AsyncGenerator<ClientWatchEvent<T>> {
    for (;;) {
      const client = await choice.current();
      try {
        yield* pick(client).watch(options);
        return;
      } catch (error) {
        // The server rejects a watch before its first event, so no event is repeated.
        if (!refusesContentType(error) || !choice.refused(client)) throw error;
      }
    }
  }

  return {
    resourceName,
    namespace: (namespace) => switchingResource(choice, resourceName, (client) => pick(client).namespace(namespace)),
    create: (...rest) => call((resource) => resource.create(...rest)),
    get: (...rest) => call((resource) => resource.get(...rest)),
    list: (...rest) => call((resource) => resource.list(...rest)),
    update: (...rest) => call((resource) => resource.update(...rest)),
    patch: (...rest) => call((resource) => resource.patch(...rest)),
    delete: (...rest) => call((resource) => resource.delete(...rest)),
    deleteCollection: (...rest) => call((resource) => resource.deleteCollection(...rest)),
    watch,
    getSubresource: (...rest) => call((resource) => resource.getSubresource(...rest)),
    updateSubresource: (...rest) => call((resource) => resource.updateSubresource(...rest)),
    patchSubresource: (...rest) => call((resource) => resource.patchSubresource(...rest)),
    createSubresource: (...rest) => call((resource) => resource.createSubresource(...rest)),
  };
}
