import { type KindDefinition, statusErrors } from '@keelson/core';
import {
  type AnswerShape,
  type FormOffer,
  type IncludeObject,
  mediaTypesOf,
  type Negotiated,
  negotiate,
  type QueryParameters,
  type Representations,
  type RequestAttributes,
  type ResourceRegistry,
  type ResourceService,
  type Target,
  type WireForm,
} from '@keelson/core/internal';
import type { Exchange } from '../exchange/exchange.ts';

/** The service of one kind in one version, and what its requests share. */
export interface Route {
  readonly service: ResourceService;
  readonly kind: KindDefinition;
  readonly forms: ResourceForms;
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
      route = { service, kind: service.kind, forms: new ResourceForms(service.kind, this.#representations) };
      this.#byService.set(service, route);
    }
    return route;
  }
}

const wholeCluster: Target = {};

/**
 * The object or collection that a path names; undefined when the path has a namespace and the kind has not, and when it
 * lacks one for an object of a namespaced kind.
 */
export function targetOf(kind: KindDefinition, attributes: RequestAttributes): Target | undefined {
  const { namespace, named, name } = attributes;
  if (kind.scope === 'Namespaced') {
    if (namespace === '') return named ? undefined : wholeCluster;
    return named ? { namespace, name } : { namespace };
  }
  // The parser reads `/namespaces/{n}` as an object in itself.
  if (namespace !== '' && !(kind.names.plural === 'namespaces' && named && namespace === name)) return undefined;
  return named ? { name } : wholeCluster;
}

/** Number of Accept headers cached for each kind. Clients use few, but may send any. */
const cachedHeaders = 64;
const longestCached = 512;

const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

/** The negotiated form for an Accept header. Forms that do not depend on the query are cached. */
interface Choice {
  readonly negotiated: Negotiated<FormOffer>;
  compact?: WireForm;
  pretty?: WireForm;
}

function includeObjectOf(query: QueryParameters): IncludeObject {
  const value = (query.first('includeObject') || 'Metadata') as IncludeObject;
  if (!includes.includes(value)) {
    throw statusErrors.badRequest(
      `Unable to convert to Table as requested: unrecognized includeObject value: ${JSON.stringify(value)}`,
    );
  }
  return value;
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
