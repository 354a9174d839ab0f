import type { ApiClient, KindDefinition, KubeObject, ResourceClient } from '@keelson/core';

/** Called instead of a binding; `bind` executes it. */
export type Intercept = (pod: string, node: string, bind: () => Promise<unknown>) => Promise<unknown>;

/** A client whose bindings are intercepted. */
export function interceptBindings(client: ApiClient, intercept: Intercept): ApiClient {
  const wrap = <T extends KubeObject>(resource: ResourceClient<T>): ResourceClient<T> =>
    new Proxy(resource, {
      get(target, property) {
        if (property === 'namespace') return (name: string) => wrap(target.namespace(name));
        if (property === 'createSubresource') {
          return (...call: Parameters<ResourceClient<T>['createSubresource']>) => {
            const { target: to } = call[2] as { target?: { name?: string } };
            return intercept(call[0], to?.name ?? '', () => target.createSubresource(...call));
          };
        }
        const value = Reflect.get(target, property) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return {
    resource: <T extends KubeObject>(kind: KindDefinition<T>) => wrap(client.resource(kind)),
    dynamic: client.dynamic.bind(client),
    discover: client.discover.bind(client),
  };
}
