import type {
  Answer,
  ConnectSubresource,
  KindDefinition,
  RequestAttributes,
  SubresourceDefinition,
  Target,
  WireForm,
} from '@keelson/core';
import { patchType } from '../body/content-type.ts';
import type { Exchange } from '../exchange.ts';
import { writeParameters } from '../parameters/write-parameters.ts';
import type { RequestInput } from './request-input.ts';
import type { Route } from './route.ts';
import { subresourceVerbs, verbNotAllowed } from './verbs.ts';

/** The subresource that a request names; undefined when the kind has none of that name. @throws StatusError 405 */
export function findSubresource(exchange: Exchange, kind: KindDefinition): SubresourceDefinition | undefined {
  const { subresource, verb, watchPath, remainder } = exchange.attributes;
  const definition = kind.subresources.find((candidate) => candidate.name === subresource);
  if (definition === undefined || watchPath) return undefined;
  if (remainder.length > 0 && !(definition.type === 'connect' && definition.tail)) return undefined;
  const offered = subresourceVerbs(definition);
  if (!offered.includes(verb)) throw verbNotAllowed(exchange, kind, offered);
  return definition;
}

/** The connect subresource that a request is about; its verbs are not looked at. */
export function connectSubresource(
  { subresource, remainder, watchPath, verb }: RequestAttributes,
  kind: KindDefinition,
): ConnectSubresource | undefined {
  if (watchPath || verb === 'proxy') return undefined;
  const found = kind.subresources.find(({ name }) => name === subresource);
  return found?.type === 'connect' && (remainder.length === 0 || found.tail) ? found : undefined;
}

/** An answer and the form it is to be written in. */
export interface FormedAnswer {
  readonly form: WireForm;
  readonly answer: Answer;
}

/** Calls the operation of the service that a request on a subresource means. */
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
      const parameters = writeParameters(query, 'PatchOptions');
      const patch = await input.patch(exchange, type);
      return { form, answer: await service.patchSubresource(exchange, target, definition, patch, parameters) };
    }
    case 'create': {
      // The answer of an action is a Status or the body of the request, which need not have metadata.
      const form = forms.of(exchange, 'object', definition.type !== 'action');
      const parameters = writeParameters(query, 'CreateOptions');
      const body = await input.body(exchange);
      return { form, answer: await service.createSubresource(exchange, target, definition, body, parameters) };
    }
    case 'update': {
      const form = forms.of(exchange, 'object');
      const parameters = writeParameters(query, 'UpdateOptions');
      const body = await input.body(exchange);
      return { form, answer: await service.updateSubresource(exchange, target, definition, body, parameters) };
    }
    default: {
      const form = forms.of(exchange, 'object');
      return { form, answer: await service.getSubresource(exchange, target, definition) };
    }
  }
}
