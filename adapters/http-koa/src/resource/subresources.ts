import {
  type ConnectSubresource,
  type KindDefinition,
  type StatusError,
  type SubresourceDefinition,
  statusErrors,
} from '@keelson/core';
import type { Answer, ProtobufBodyType, RequestAttributes, Target, WireForm } from '@keelson/core/internal';
import type { Exchange } from '../exchange/exchange.ts';
import { writeParameters } from '../exchange/query-parameters.ts';
import { patchType, type RequestInput } from '../exchange/request-body.ts';
import type { Route } from './resource-handler.ts';

/**
 * The subresource that a request names; undefined when the kind has no such subresource. @throws StatusError 405, and
 * 404 of the object when a custom kind has no such subresource
 */
export function findSubresource(exchange: Exchange, kind: KindDefinition): SubresourceDefinition | undefined {
  const { subresource, verb, watchPath, remainder } = exchange.attributes;
  const definition = kind.subresources.find((candidate) => candidate.name === subresource);
  if (definition === undefined || watchPath || !takesRemainder(definition, remainder)) {
    if (kind.structural) return undefined;
    throw statusErrors.notFound({ group: kind.group, resource: kind.names.plural }, exchange.attributes.name);
  }
  const offered = subresourceVerbs(definition);
  if (!offered.includes(verb)) throw verbNotAllowed(exchange, kind, offered);
  return definition;
}

/** The connect subresource that a path names, regardless of the verb. */
export function connectSubresource(
  { subresource, remainder, watchPath, verb }: RequestAttributes,
  kind: KindDefinition,
): ConnectSubresource | undefined {
  if (watchPath || verb === 'proxy') return undefined;
  const found = kind.subresources.find(({ name }) => name === subresource);
  return found?.type === 'connect' && takesRemainder(found, remainder) ? found : undefined;
}

/** Trailing slashes are ignored, except behind proxies, which forward the rest of the path. */
function takesRemainder(definition: SubresourceDefinition, remainder: readonly string[]): boolean {
  return (definition.type === 'connect' && definition.tail) || remainder.every((segment) => segment === '');
}

/** A response and its representation. */
export interface FormedAnswer {
  readonly form: WireForm;
  readonly answer: Answer;
}

/** Calls the service operation for a request on a subresource. */
export async function callSubresource(
  exchange: Exchange,
  { service, kind, forms }: Route,
  target: Target,
  definition: SubresourceDefinition,
  input: RequestInput,
): Promise<FormedAnswer> {
  const { query, verb } = exchange.attributes;
  switch (verb) {
    case 'patch': {
      const type = patchType(exchange.request.headers['content-type'], kind);
      const form = forms.of(exchange, 'object');
      const parameters = writeParameters(query, 'PatchOptions', type === 'apply');
      const patch = await input.patch(exchange, type, kind);
      return { form, answer: await service.patchSubresource(exchange, target, definition, patch, parameters) };
    }
    case 'create': {
      // The response of an action is a Status or the body of the request, which has no metadata.
      const form = forms.of(exchange, 'object', definition.type !== 'action');
      const parameters = writeParameters(query, 'CreateOptions');
      const body = await input.body(exchange, bodyTypeOf(definition, kind));
      return { form, answer: await service.createSubresource(exchange, target, definition, body, parameters) };
    }
    case 'update': {
      const form = forms.of(exchange, 'object');
      const parameters = writeParameters(query, 'UpdateOptions');
      const body = await input.body(exchange, bodyTypeOf(definition, kind));
      return { form, answer: await service.updateSubresource(exchange, target, definition, body, parameters) };
    }
    default: {
      const form = forms.of(exchange, 'object');
      return { form, answer: await service.getSubresource(exchange, target, definition) };
    }
  }
}

/** The type of the bodies of a subresource. */
function bodyTypeOf(definition: SubresourceDefinition, kind: KindDefinition): ProtobufBodyType {
  return 'bodyKind' in definition ? { kind: definition.bodyKind.kind, schema: definition.schema } : kind;
}

/** HTTP methods of the verbs, for the `Allow` header. */
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

/** A 405 for a verb that is not offered; the `Allow` header contains the offered ones. */
export function verbNotAllowed(exchange: Exchange, kind: KindDefinition, offered: readonly string[]): StatusError {
  const methods = new Set(offered.map((verb) => methodOf[verb] ?? ''));
  exchange.allow = [...methods].filter((method) => method !== '').join(', ');
  return statusErrors.methodNotAllowed({ group: kind.group, resource: kind.names.plural }, exchange.attributes.verb);
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
