import {
  type KindDefinition,
  type RequestAttributes,
  type StatusError,
  type SubresourceDefinition,
  statusErrors,
  type Target,
  type Verb,
} from '@keelson/core';
import type { Exchange } from '../exchange.ts';

/** HTTP methods by which the verbs of a collection or object arrive, for `Allow`. */
const methodOf: Readonly<Record<string, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};

/** Whether a verb can arrive by this path: on an object, a collection, or all namespaces. */
function pathTakes(verb: Verb, { watchPath, named }: RequestAttributes, kind: KindDefinition, target: Target): boolean {
  if (watchPath) return verb === 'watch';
  switch (verb) {
    case 'get':
    case 'update':
    case 'patch':
    case 'delete':
      return named;
    case 'list':
    case 'watch':
      return !named;
    case 'create':
    case 'deletecollection':
      // Objects are created and deleted in their namespace, never in all of them.
      return !named && (kind.scope === 'Cluster' || target.namespace !== undefined);
  }
}

/** 405 for a verb that is not among those offered, which are named in `Allow`. */
export function verbNotAllowed(exchange: Exchange, kind: KindDefinition, offered: readonly string[]): StatusError {
  const methods = new Set(offered.map((verb) => methodOf[verb] ?? ''));
  exchange.allow = [...methods].filter((method) => method !== '').join(', ');
  return statusErrors.methodNotAllowed({ group: kind.group, resource: kind.names.plural }, exchange.attributes.verb);
}

/** Refuses what the kind, or this path of it, does not offer. @throws StatusError 405 */
export function checkVerb(exchange: Exchange, kind: KindDefinition, target: Target): void {
  const { attributes } = exchange;
  const verb = attributes.verb as Verb;
  if (kind.verbs.includes(verb) && pathTakes(verb, attributes, kind, target)) return;
  const offered = kind.verbs.filter((candidate) => pathTakes(candidate, attributes, kind, target));
  throw verbNotAllowed(exchange, kind, offered);
}

/** Verbs of a subresource: see docs/reference/api-rules.md#subresources. */
export function subresourceVerbs(subresource: SubresourceDefinition): readonly string[] {
  switch (subresource.type) {
    case 'status':
    case 'projection':
      return ['get', 'update', 'patch'];
    case 'replace':
      return subresource.patchable ? ['get', 'update', 'patch'] : ['update'];
    case 'action':
      return ['create'];
    case 'connect':
      return subresource.tail ? [...subresource.verbs, 'options'] : subresource.verbs;
  }
}
