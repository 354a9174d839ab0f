import { type ConnectSubresource, type KindDefinition, statusErrors, type Verb } from '@keelson/core';
import {
  type Answer,
  type AnswerShape,
  type Brand,
  type ExportParameters,
  type FormOffer,
  mediaTypesOf,
  type Negotiated,
  negotiate,
  type Representations,
  type RequestAttributes,
  type ResourceRegistry,
  type ResourceService,
  type Target,
  type WireForm,
} from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import type { AggregatedApis, AggregatedServer } from '../exchange/aggregated-apis.ts';
import { type Exchange, sendBytes } from '../exchange/exchange.ts';
import { type ListMemory, sendList } from '../exchange/list-body.ts';
import { type MetricsResource, metricsResource } from '../exchange/metrics.ts';
import type { HttpLimits } from '../exchange/options.ts';
import {
  includeObjectOf,
  integerParameter,
  selectParametersOf,
  writeParameters,
} from '../exchange/query-parameters.ts';
import { patchType, RequestInput } from '../exchange/request-body.ts';
import { sendNoSuchResource, sendWhole } from '../exchange/send.ts';
import { callSubresource, connectSubresource, findSubresource, verbNotAllowed } from './subresources.ts';

/** The service of one kind in one version, and what its requests share. */
export interface Route {
  readonly service: ResourceService;
  readonly kind: KindDefinition;
  readonly forms: ResourceForms;
  readonly metricsResource: MetricsResource;
}

/** Finds the route of a request in constant time. */
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
      const { kind } = service;
      route = {
        service,
        kind,
        forms: new ResourceForms(kind, this.#representations),
        metricsResource: metricsResource(kind.group, kind.version, kind.names.plural),
      };
      this.#byService.set(service, route);
    }
    return route;
  }

  readonly sendNoSuchResource = (exchange: Exchange): void =>
    sendNoSuchResource(exchange, exchange.attributes.apiGroup, this.#registry.kinds());

  /** The connect subresource that a request names, regardless of the verb. */
  readonly connectOf = (attributes: RequestAttributes): ConnectSubresource | undefined => {
    const kind = this.find(attributes)?.kind;
    return kind && connectSubresource(attributes, kind);
  };
}

const wholeCluster: Target = {};

/**
 * The object or collection that a path names. Undefined when the path of a cluster-scoped kind has a namespace, and
 * when the path of a namespaced object has none.
 */
function targetOf(kind: KindDefinition, attributes: RequestAttributes): Target | undefined {
  const { namespace, named, name } = attributes;
  if (kind.scope === 'Namespaced') {
    if (namespace === '') return named ? undefined : wholeCluster;
    return named ? { namespace, name } : { namespace };
  }
  // For `/namespaces/{n}` the parser returns the namespace as both the name and the namespace of the object.
  if (namespace !== '' && !(kind.names.plural === 'namespaces' && named && namespace === name)) return undefined;
  return named ? { name } : wholeCluster;
}

/** Number of Accept headers cached for each kind. Clients use few, but may send any. */
const cachedHeaders = 64;
const longestCached = 512;

/** The negotiated form for an Accept header. Forms that do not depend on the query are cached. */
interface Choice {
  readonly negotiated: Negotiated<FormOffer>;
  compact?: WireForm;
  pretty?: WireForm;
}

/** Chooses the representation of responses about one kind: negotiation, `pretty`, `includeObject`. */
export class ResourceForms {
  readonly #kind: KindDefinition;
  readonly #representations: Representations;
  readonly #choices = new Map<string, Choice>();

  constructor(kind: KindDefinition, representations: Representations) {
    this.#kind = kind;
    this.#representations = representations;
  }

  /**
   * The representation for a request.
   * @param rows false for a response that cannot be shown as a Table
   * @throws StatusError 406 when no clause of Accept can be served, 400 for a bad `includeObject`.
   */
  of(exchange: Exchange, shape: AnswerShape, rows = true): WireForm {
    const { query } = exchange.attributes;
    const tables = rows && (shape !== 'watch' || query.boolean('sendInitialEvents') !== true);
    const choice = this.#choose(exchange.request.headers.accept ?? '', shape, tables);
    const { offer, target, pretty: prettyClause } = choice.negotiated;
    const pretty = offer.media === 'json' && exchange.wantsPretty(prettyClause);
    if (target?.kind === 'Table') {
      const wanted = this.#representations.target(target, includeObjectOf(query));
      return this.#representations.form(this.#kind, { media: offer.media, pretty, target: wanted });
    }
    const known = pretty ? choice.pretty : choice.compact;
    if (known !== undefined) return known;
    const wanted = this.#representations.target(target);
    const form = this.#representations.form(this.#kind, { media: offer.media, pretty, target: wanted });
    if (pretty) choice.pretty = form;
    else choice.compact = form;
    return form;
  }

  #choose(accept: string, shape: AnswerShape, tables: boolean): Choice {
    const key = tables ? `${shape} ${accept}` : `${shape}- ${accept}`;
    const known = this.#choices.get(key);
    if (known !== undefined) return known;
    const offers = this.#representations.offers(this.#kind, shape, { tables });
    const negotiated = negotiate(accept, offers);
    if (negotiated === undefined) throw statusErrors.notAcceptable(mediaTypesOf(offers));
    const choice: Choice = { negotiated };
    if (key.length <= longestCached) {
      if (this.#choices.size >= cachedHeaders) this.#choices.clear();
      this.#choices.set(key, choice);
    }
    return choice;
  }
}

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
  /** Forwards a request to an aggregated server. Resolves when the forwarded call has ended. */
  forward(exchange: Exchange, server: AggregatedServer): Promise<void>;
}

export interface ResourceHandlerOptions {
  readonly routes: Routes;
  readonly watches: WatchRequests;
  readonly connects: ConnectRequests;
  readonly aggregated: AggregatedApis | undefined;
  readonly limits: HttpLimits;
  readonly clock: Clock;
  readonly brand: Brand;
  /** The memory that the responses to all lists share. */
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
    const { aggregated, connects } = this.#options;
    if (aggregated?.active) {
      const server = aggregated.find(attributes.apiGroup, attributes.apiVersion);
      if (server !== undefined) return connects.forward(exchange, server);
    }
    const route = this.#options.routes.find(attributes);
    const target = route && targetOf(route.kind, attributes);
    if (route === undefined || target === undefined || attributes.verb === 'proxy')
      return this.#options.routes.sendNoSuchResource(exchange);
    exchange.metricsResource = route.metricsResource;
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
    const parameters = writeParameters(exchange.attributes.query, 'PatchOptions', type === 'apply');
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
    if (definition === undefined) return this.#options.routes.sendNoSuchResource(exchange);
    exchange.metricsSubresource = definition.name;
    if (definition.type === 'connect') return this.#options.connects.handle(exchange, route, target, definition);
    const { form, answer } = await callSubresource(exchange, route, target, definition, this.#input);
    return this.#send(exchange, form, answer);
  }

  #send(exchange: Exchange, form: WireForm, answer: Answer): Promise<void> | void {
    exchange.audit?.answered(answer);
    const bytes = 'stored' in answer ? form.stored(answer.stored) : form.value(answer.object);
    const { gzipBytes } = this.#options.limits;
    if (bytes.length <= gzipBytes) return sendBytes(exchange, answer.code, form.contentType, bytes);
    return sendWhole(exchange, answer.code, form.contentType, bytes, gzipBytes);
  }
}

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

/** Rejects a verb that the kind, or this path of it, does not offer. @throws StatusError 405 */
export function checkVerb(exchange: Exchange, kind: KindDefinition, target: Target): void {
  const { attributes } = exchange;
  const verb = attributes.verb as Verb;
  if (kind.verbs.includes(verb) && pathTakes(verb, attributes, kind, target)) return;
  const offered = kind.verbs.filter((candidate) => pathTakes(candidate, attributes, kind, target));
  throw verbNotAllowed(exchange, kind, offered);
}
