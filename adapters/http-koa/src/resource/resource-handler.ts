import {
  type Answer,
  type Body,
  type Clock,
  type DeleteParameters,
  type ExportParameters,
  isDocumentError,
  type KindDefinition,
  type PatchBody,
  parseJson,
  parseYaml,
  type RequestAttributes,
  type SubresourceDefinition,
  statusErrors,
  type Target,
  type Verb,
  type WireForm,
} from '@keelson/core';
import { sendList } from '../answer/list-body.ts';
import { sendNotFound, sendWhole } from '../answer/send.ts';
import { bodyFormat, patchType } from '../body/content-type.ts';
import { readBody } from '../body/read-body.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpLimits } from '../options.ts';
import { deleteParametersFromBody, deleteParametersFromQuery } from '../parameters/delete-parameters.ts';
import { integerParameter } from '../parameters/numbers.ts';
import { selectParametersOf } from '../parameters/select-parameters.ts';
import { writeParameters } from '../parameters/write-parameters.ts';
import type { WatchHandler } from '../watch/watch-handler.ts';
import { type Route, type Routes, subresourceVerbs, targetOf } from './route.ts';

const latest: ExportParameters & { readonly resourceVersion: string } = { export: false, exact: false, resourceVersion: '' };

function getParameters({ query }: RequestAttributes): ExportParameters & { readonly resourceVersion: string } {
  if (query.text === '') return latest;
  return {
    export: query.boolean('export') ?? false,
    exact: query.boolean('exact') ?? false,
    resourceVersion: query.first('resourceVersion') ?? '',
  };
}

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

export interface ResourceHandlerOptions {
  readonly routes: Routes;
  readonly watches: WatchHandler;
  readonly limits: HttpLimits;
  readonly clock: Clock;
}

/** Turns requests of the resource API into calls of the resource service, and its answers into bytes. */
export class ResourceHandler {
  readonly #options: ResourceHandlerOptions;

  constructor(options: ResourceHandlerOptions) {
    this.#options = options;
  }

  /** Answers one request; fails with what the service or a rule of the transport says. */
  handle(exchange: Exchange): Promise<void> | void {
    const { attributes } = exchange;
    const route = this.#options.routes.find(attributes);
    const target = route && targetOf(route.kind, attributes);
    if (route === undefined || target === undefined || attributes.remainder.length > 0 || attributes.verb === 'proxy') {
      return sendNotFound(exchange);
    }
    exchange.metricsResource = route.kind.names.plural;
    if (attributes.subresource !== '') return this.#subresource(exchange, route, target);
    this.#checkVerb(exchange, route, target);
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
        throw this.#notAllowed(exchange, route, route.kind.verbs);
    }
  }

  /** 405 for what the kind, or this path of it, does not offer. */
  #checkVerb(exchange: Exchange, route: Route, target: Target): void {
    const { attributes } = exchange;
    const { kind } = route;
    const verb = attributes.verb as Verb;
    if (kind.verbs.includes(verb) && pathTakes(verb, attributes, kind, target)) return;
    throw this.#notAllowed(
      exchange,
      route,
      kind.verbs.filter((candidate) => pathTakes(candidate, attributes, kind, target)),
    );
  }

  #notAllowed(exchange: Exchange, { kind }: Route, offered: readonly string[]): Error {
    exchange.allow = [...new Set(offered.map((verb) => methodOf[verb] ?? ''))].filter((method) => method !== '').join(', ');
    return statusErrors.methodNotAllowed({ group: kind.group, resource: kind.names.plural }, exchange.attributes.verb);
  }

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
    await sendList(exchange, form.contentType, form.list(answer), this.#options);
  }

  async #create(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'CreateOptions');
    const body = await this.#body(exchange);
    return this.#send(exchange, form, await route.service.create(exchange, target, body, parameters));
  }

  async #update(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'UpdateOptions');
    const body = await this.#body(exchange);
    return this.#send(exchange, form, await route.service.update(exchange, target, body, parameters));
  }

  async #patch(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const type = patchType(exchange.request.headers['content-type'], route.kind);
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'PatchOptions');
    const patch = await this.#patchBody(exchange, type);
    return this.#send(exchange, form, await route.service.patch(exchange, target, patch, parameters));
  }

  async #delete(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = await this.#deleteParameters(exchange, route.kind.apiVersion);
    const answer =
      target.name === undefined
        ? await route.service.deleteCollection(exchange, target, parameters, selectParametersOf(exchange.attributes.query))
        : await route.service.delete(exchange, target, parameters);
    return this.#send(exchange, form, answer);
  }

  async #subresource(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const { attributes } = exchange;
    const definition = route.kind.subresources.find((candidate) => candidate.name === attributes.subresource);
    if (definition === undefined || attributes.watchPath) return sendNotFound(exchange);
    const offered = subresourceVerbs(definition);
    if (!offered.includes(attributes.verb)) throw this.#notAllowed(exchange, route, offered);
    return this.#send(exchange, ...(await this.#callSubresource(exchange, route, target, definition)));
  }

  async #callSubresource(
    exchange: Exchange,
    { service, kind, forms }: Route,
    target: Target,
    definition: SubresourceDefinition,
  ): Promise<[WireForm, Answer]> {
    const { query, verb } = exchange.attributes;
    if (verb === 'patch') {
      const type = patchType(exchange.request.headers['content-type'], kind);
      const form = forms.of(exchange, 'object');
      const parameters = writeParameters(query, 'PatchOptions');
      const patch = await this.#patchBody(exchange, type);
      return [form, await service.patchSubresource(exchange, target, definition, patch, parameters)];
    }
    const form = forms.of(exchange, 'object');
    if (verb === 'get') return [form, await service.getSubresource(exchange, target, definition)];
    const parameters = writeParameters(query, verb === 'create' ? 'CreateOptions' : 'UpdateOptions');
    const body = await this.#body(exchange);
    return [
      form,
      verb === 'create'
        ? await service.createSubresource(exchange, target, definition, body, parameters)
        : await service.updateSubresource(exchange, target, definition, body, parameters),
    ];
  }

  async #body(exchange: Exchange): Promise<Body> {
    const format = bodyFormat(exchange.request.headers['content-type']);
    return { bytes: await readBody(exchange, this.#options.limits.bodyBytes), format };
  }

  async #patchBody(exchange: Exchange, type: PatchBody['type']): Promise<PatchBody> {
    return { type, bytes: await readBody(exchange, this.#options.limits.bodyBytes) };
  }

  /** A body decides alone; only without one the query is looked at (api-conventions 8.2). */
  async #deleteParameters(exchange: Exchange, apiVersion: string): Promise<DeleteParameters> {
    const bytes = await readBody(exchange, this.#options.limits.bodyBytes);
    if (bytes.length === 0) return deleteParametersFromQuery(exchange.attributes.query);
    const format = bodyFormat(exchange.request.headers['content-type']);
    try {
      const { value } = format === 'yaml' ? parseYaml(bytes) : parseJson(bytes, {});
      return deleteParametersFromBody(value, apiVersion);
    } catch (error) {
      if (isDocumentError(error)) {
        throw statusErrors.badRequest(`DeleteOptions in the body cannot be decoded: ${error.message}`, error);
      }
      throw error;
    }
  }

  #send(exchange: Exchange, form: WireForm, answer: Answer): Promise<void> | void {
    const bytes = 'stored' in answer ? form.stored(answer.stored) : form.value(answer.object);
    return sendWhole(exchange, answer.code, form.contentType, bytes, this.#options.limits.gzipBytes);
  }
}
