import type { AccessAttributes, Authorizer, RequestContext } from '@keelson/core';
import {
  parseRequestAttributes,
  type ResourceRegistry,
  type ResourceService,
  type Target,
} from '@keelson/core/internal';
import { requireAllowed } from '@keelson/http-koa';

/** The name to which a field selector restricts a list or watch, as the request filter reads it. */
function selectedName(fieldSelector: string | undefined): string {
  if (fieldSelector === undefined) return '';
  return parseRequestAttributes('GET', `/api/v1/a?fieldSelector=${encodeURIComponent(fieldSelector)}`).name;
}

function authorized(service: ResourceService, authorizer: Authorizer): ResourceService {
  const { kind } = service;
  const isNamespace = kind.group === '' && kind.names.plural === 'namespaces';
  const check = async (
    context: RequestContext,
    verb: string,
    target: Target,
    more: { readonly subresource?: string; readonly fieldSelector?: string | undefined } = {},
  ): Promise<RequestContext> => {
    const { subresource = '', fieldSelector } = more;
    const name = target.name ?? selectedName(fieldSelector);
    const attributes: AccessAttributes = {
      verb,
      isResourceRequest: true,
      apiGroup: kind.group,
      apiVersion: kind.version,
      namespace: target.namespace ?? (isNamespace && target.name !== undefined ? target.name : ''),
      resource: kind.names.plural,
      subresource,
      // The name in the body of a create is not a part of its path.
      name: verb === 'create' && subresource === '' ? '' : name,
      path: '',
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
    const require = async (asked: AccessAttributes) =>
      requireAllowed(await authorizer.authorize(asked, context.user), asked, context.user);
    await require(attributes);
    return { ...context, authorize: (other) => require({ ...attributes, verb: other }) };
  };
  return {
    kind,
    create: async (context, target, ...call) => service.create(await check(context, 'create', target), target, ...call),
    get: async (context, target, ...call) => service.get(await check(context, 'get', target), target, ...call),
    list: async (context, target, select) => service.list(await check(context, 'list', target, select), target, select),
    watch: async (context, target, select) =>
      service.watch(await check(context, 'watch', target, select), target, select),
    update: async (context, target, ...call) => service.update(await check(context, 'update', target), target, ...call),
    patch: async (context, target, ...call) => service.patch(await check(context, 'patch', target), target, ...call),
    delete: async (context, target, ...call) => service.delete(await check(context, 'delete', target), target, ...call),
    deleteCollection: async (context, target, parameters, select) =>
      service.deleteCollection(await check(context, 'deletecollection', target, select), target, parameters, select),
    getSubresource: async (context, target, sub) =>
      service.getSubresource(await check(context, 'get', target, { subresource: sub.name }), target, sub),
    updateSubresource: async (context, target, sub, ...call) =>
      service.updateSubresource(
        await check(context, 'update', target, { subresource: sub.name }),
        target,
        sub,
        ...call,
      ),
    patchSubresource: async (context, target, sub, ...call) =>
      service.patchSubresource(await check(context, 'patch', target, { subresource: sub.name }), target, sub, ...call),
    createSubresource: async (context, target, sub, ...call) =>
      service.createSubresource(
        await check(context, 'create', target, { subresource: sub.name }),
        target,
        sub,
        ...call,
      ),
    connect: async (context, target, sub, ...call) =>
      service.connect(await check(context, 'create', target, { subresource: sub.name }), target, sub, ...call),
  };
}

/**
 * The registry with the authorization that the request filter does for requests over HTTP: each call is checked for
 * the user of its context. Calls that are not allowed fail with the StatusError 403 of such requests.
 */
export function authorizedRegistry(registry: ResourceRegistry, authorizer: Authorizer): ResourceRegistry {
  const made = new WeakMap<ResourceService, ResourceService>();
  return {
    kinds: () => registry.kinds(),
    get generation() {
      return registry.generation;
    },
    find: (resource) => {
      const service = registry.find(resource);
      if (service === undefined) return undefined;
      let view = made.get(service);
      if (view === undefined) {
        view = authorized(service, authorizer);
        made.set(service, view);
      }
      return view;
    },
    add: (kind) => registry.add(kind),
    remove: (kind) => registry.remove(kind),
    replace: (removed, added) => registry.replace(removed, added),
  };
}
