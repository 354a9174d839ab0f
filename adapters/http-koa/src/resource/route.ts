import type {
  KindDefinition,
  Representations,
  RequestAttributes,
  ResourceRegistry,
  ResourceService,
  Target,
} from '@keelson/core';
import { ResourceForms } from '../answer/resource-forms.ts';

/** What serves one kind in one version, with everything about it that requests share. */
export interface Route {
  readonly service: ResourceService;
  readonly kind: KindDefinition;
  readonly forms: ResourceForms;
}

/** Finds the route of a request in constant time, whatever kinds are registered. */
export class Routes {
  readonly #registry: ResourceRegistry;
  readonly #representations: Representations;
  readonly #byService = new WeakMap<ResourceService, Route>();

  constructor(registry: ResourceRegistry, representations: Representations) {
    this.#registry = registry;
    this.#representations = representations;
  }

  find(attributes: RequestAttributes): Route | undefined {
    const service = this.#registry.find({
      group: attributes.apiGroup,
      version: attributes.apiVersion,
      resource: attributes.resource,
    });
    if (service === undefined) return undefined;
    let route = this.#byService.get(service);
    if (route === undefined) {
      route = { service, kind: service.kind, forms: new ResourceForms(service.kind, this.#representations) };
      this.#byService.set(service, route);
    }
    return route;
  }
}

const wholeCluster: Target = {};

/**
 * Which object or collection a path means for a kind; undefined when the path has a namespace that the kind does not,
 * or lacks one that an object of the kind needs.
 */
export function targetOf(kind: KindDefinition, attributes: RequestAttributes): Target | undefined {
  const { namespace, named, name } = attributes;
  if (kind.scope === 'Namespaced') {
    if (namespace === '') return named ? undefined : wholeCluster;
    return named ? { namespace, name } : { namespace };
  }
  // The parser reads `/namespaces/{n}` as an object that lies in itself.
  if (namespace !== '' && !(kind.names.plural === 'namespaces' && named && namespace === name)) return undefined;
  return named ? { name } : wholeCluster;
}
