import type { Answer, Brand, Clock, ExportParameters, RequestAttributes, Target, WireForm } from '@keelson/core';
import { listPieces, sendList } from '../answer/list-body.ts';
import { sendNotFound, sendWhole } from '../answer/send.ts';
import { patchType } from '../body/content-type.ts';
import type { ConnectHandler } from '../connect/connect-handler.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpLimits } from '../options.ts';
import { integerParameter } from '../parameters/numbers.ts';
import { selectParametersOf } from '../parameters/select-parameters.ts';
import { writeParameters } from '../parameters/write-parameters.ts';
import type { WatchHandler } from '../watch/watch-handler.ts';
import { RequestInput } from './request-input.ts';
import { type Route, type Routes, targetOf } from './route.ts';
import { callSubresource, findSubresource } from './subresources.ts';
import { checkVerb, verbNotAllowed } from './verbs.ts';

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

export interface ResourceHandlerOptions {
  readonly routes: Routes;
  readonly watches: WatchHandler;
  readonly connects: ConnectHandler;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly brand: Brand;
}

/** Turns requests of the resource API into calls of the resource service, and its answers into bytes. */
export class ResourceHandler {
  readonly #options: ResourceHandlerOptions;
  readonly #input: RequestInput;

  constructor(options: ResourceHandlerOptions) {
    this.#options = options;
    this.#input = new RequestInput(options.limits.bodyBytes, options.brand);
  }

  /** Answers one request; fails with what the service or a rule of the transport says. */
  handle(exchange: Exchange): Promise<void> | void {
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
    await sendList(exchange, form.contentType, form.list(answer, listPieces), this.#options);
  }

  async #create(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'CreateOptions');
    const body = await this.#input.body(exchange);
    return this.#send(exchange, form, await route.service.create(exchange, target, body, parameters));
  }

  async #update(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'UpdateOptions');
    const body = await this.#input.body(exchange);
    return this.#send(exchange, form, await route.service.update(exchange, target, body, parameters));
  }

  async #patch(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const type = patchType(exchange.request.headers['content-type'], route.kind);
    const form = route.forms.of(exchange, 'object');
    const parameters = writeParameters(exchange.attributes.query, 'PatchOptions');
    const patch = await this.#input.patch(exchange, type);
    return this.#send(exchange, form, await route.service.patch(exchange, target, patch, parameters));
  }

  async #delete(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const form = route.forms.of(exchange, target.name === undefined ? 'list' : 'object');
    const parameters = await this.#input.deleteParameters(exchange, route.kind.apiVersion);
    if (target.name !== undefined)
      return this.#send(exchange, form, await route.service.delete(exchange, target, parameters));
    const select = selectParametersOf(exchange.attributes.query);
    const answer = await route.service.deleteCollection(exchange, target, parameters, select);
    await sendList(exchange, form.contentType, form.list(answer, listPieces), this.#options);
  }

  async #subresource(exchange: Exchange, route: Route, target: Target): Promise<void> {
    const definition = findSubresource(exchange, route.kind);
    if (definition === undefined) return sendNotFound(exchange);
    if (definition.type === 'connect') return this.#options.connects.handle(exchange, route, target, definition);
    const { form, answer } = await callSubresource(exchange, route, target, definition, this.#input);
    return this.#send(exchange, form, answer);
  }

  #send(exchange: Exchange, form: WireForm, answer: Answer): Promise<void> | void {
    const bytes = 'stored' in answer ? form.stored(answer.stored) : form.value(answer.object);
    return sendWhole(exchange, answer.code, form.contentType, bytes, this.#options.limits.gzipBytes);
  }
}
