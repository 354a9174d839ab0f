import {
  type ConnectSubresource,
  type KindDefinition,
  type StatusError,
  type SubresourceDefinition,
  statusErrors,
  type Verb,
} from '@keelson/core';
import type {
  Answer,
  Brand,
  ExportParameters,
  ProtobufBodyType,
  RequestAttributes,
  Target,
  WireForm,
} from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { Exchange } from '../exchange/exchange.ts';
import { type ListMemory, sendList } from '../exchange/list-body.ts';
import type { HttpLimits } from '../exchange/options.ts';
import { integerParameter, selectParametersOf, writeParameters } from '../exchange/query-parameters.ts';
import { patchType, RequestInput } from '../exchange/request-body.ts';
import { sendNotFound, sendWhole } from '../exchange/send.ts';
import { type Route, type Routes, targetOf } from './route.ts';

const latest: ExportParameters & { readonly resourceVersion: string } = {
  export: false,
  exact: false,
  resourceVersion: '',
};

function getParameters({ query }: RequestAttributes): ExportParameters & { readonly resourceVersion: string } {
  if (query.text === '') return latest;
  return {
    export: query.boolean('export') ?? false,
    exact: query.boolean('exact') ?? false,
    resourceVersion: query.first('resourceVersion') ?? '',
  };
}

/** Handles the watch requests. */
export interface WatchRequests {
  /** Resolves when the watch has ended. */
  handle(exchange: Exchange, route: Route, target: Target): Promise<void>;
}

/** Handles the requests on connect subresources such as `exec`, `log` and `proxy`. */
export interface ConnectRequests {
  /** Resolves when the forwarded call has ended. */
  handle(exchange: Exchange, route: Route, target: Target, subresource: ConnectSubresource): Promise<void>;
}

export interface ResourceHandlerOptions {
  readonly routes: Routes;
  readonly watches: WatchRequests;
  readonly connects: ConnectRequests;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly brand: Brand;
  /** Shared by all lists. */
  readonly memory: ListMemory;
}

/** Maps requests of the resource API to calls of the resource service, and their results to responses. */
export class ResourceHandler {
  readonly #options: ResourceHandlerOptions;
  readonly #input: RequestInput;

  constructor(options: ResourceHandlerOptions) {
    this.#options = options;
    this.#input = new RequestInput(options.limits.bodyBytes, options.brand);
  }

  /** Handles one request; fails with the StatusError of the service or of a check of this class. */
  readonly handle = (exchange: Exchange): Promise<void> | void => {
    const { attributes } = exchange;
    const route = this.#options.routes.find(attributes);
    const target = route && targetOf(route.kind, attributes);
    if (route === undefined || target === undefined || attributes.verb === 'proxy') return sendNotFound(exchange);
    exchange.metricsResource = route.kind.names.plural;
    if (route.kind.deprecationWarning !== undefined) exchange.warn(route.kind.deprecationWarning);
    if (attributes.subresource !== '') return this.#subresource(exchange, route, target);
    checkVerb(exchange, route.kind, target);
    switch (attributes.verb) {
      case 'get':
        return this.#get(exchange, route, target);
      case 'list':
        return this.#list(exchange, route, target);
      case 'watch':
        return this.#options.watches.handle(exchange, route, target);
      case 'create':
        return this.#create(exchange, route, target);
      case 'update':
        return this.#update(exchange, route, target);
      case 'patch':
        return this.#patch(exchange, route, target);
      case 'delete':
      case 'deletecollection':
        return this.#delete(exchange, route, target);
      default:
        throw verbNotAllowed(exchange, route.kind, route.kind.verbs);
    }
  };

  async #get(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const answer = await route.service.get(exchange, target, getParameters(exchange.attributes));
    return this.#send(exchange, form, answer);
  }

  async #list(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'list');
    const { query } = exchange.attributes;
    const timeoutSeconds = query.text === '' ? undefined : integerParameter(query, 'timeoutSeconds');
    if (timeoutSeconds !== undefined && timeoutSeconds > 0) {
      exchange.deadlineAt = Math.min(exchange.deadlineAt, this.#options.clock.monotonic() + timeoutSeconds * 1000);
    }
    const answer = await route.service.list(exchange, target, selectParametersOf(query));
    exchange.audit?.answered(answer);
    await sendList(exchange, form.contentType, form.list(answer, this.#options.memory.buffers), this.#options);
  }

  async #create(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'CreateOptions');
    const body = await this.#input.body(exchange, route.kind);
    return this.#send(exchange, form, await route.service.create(exchange, target, body, parameters));
  }

  async #update(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'UpdateOptions');
    const body = await this.#input.body(exchange, route.kind);
    return this.#send(exchange, form, await route.service.update(exchange, target, body, parameters));
  }

  async #patch(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const type = patchType(exchange.request.headers['content-type'], route.kind);
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'PatchOptions');
    const patch = await this.#input.patch(exchange, type, route.kind);
    return this.#send(exchange, form, await route.service.patch(exchange, target, patch, parameters));
  }

  async #delete(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, target.name === undefined ? 'list' : 'object');
    const parameters = await this.#input.deleteParameters(exchange, route.kind.apiVersion);
    if (target.name !== undefined)
      return this.#send(exchange, form, await route.service.delete(exchange, target, parameters));
    const select = selectParametersOf(exchange.attributes.query);
    const answer = await route.service.deleteCollection(exchange, target, parameters, select);
    exchange.audit?.answered(answer);
    await sendList(exchange, form.contentType, form.list(answer, this.#options.memory.buffers), this.#options);
  }

  async #subresource(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const definition = findSubresource(exchange, route.kind);
    if (definition === undefined) return sendNotFound(exchange);
    if (definition.type === 'connect') return this.#options.connects.handle(exchange, route, target, definition);
    const { form, answer } = await callSubresource(exchange, route, target, definition, this.#input);
    return this.#send(exchange, form, answer);
  }

  #send(exchange: Exchange, form: WireForm, answer: Answer): Promise<void> | void {
    exchange.audit?.answered(answer);
    const bytes = 'stored' in answer ? form.stored(answer.stored) : form.value(answer.object);
    return sendWhole(exchange, answer.code, form.contentType, bytes, this.#options.limits.gzipBytes);
  }
}

/** The subresource that a request names; undefined when the kind has no such subresource. @throws StatusError 405 */
export function findSubresource(exchange: Exchange, kind: KindDefinition): SubresourceDefinition | undefined {
  const { subresource, verb, watchPath, remainder } = exchange.attributes;
  const definition = kind.subresources.find((candidate) => candidate.name === subresource);
  if (definition === undefined || watchPath) return undefined;
  if (remainder.length > 0 && !(definition.type === 'connect' && definition.tail)) return undefined;
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
  return found?.type === 'connect' && (remainder.length === 0 || found.tail) ? found : undefined;
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
      const parameters = writeParameters(query, 'PatchOptions');
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

/** Whether a verb is possible for a path: on an object, a collection, or all namespaces. */
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
      // Objects are created and deleted in one namespace, never in all of them.
      return !named && (kind.scope === 'Cluster' || target.namespace !== undefined);
  }
}

/** A 405 for a verb that is not offered; the `Allow` header contains the offered ones. */
export function verbNotAllowed(exchange: Exchange, kind: KindDefinition, offered: readonly string[]): StatusError {
  const methods = new Set(offered.map((verb) => methodOf[verb] ?? ''));
  exchange.allow = [...methods].filter((method) => method !== '').join(', ');
  return statusErrors.methodNotAllowed({ group: kind.group, resource: kind.names.plural }, exchange.attributes.verb);
}

/** Rejects a verb that the kind, or this path of it, does not offer. @throws StatusError 405 */
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
