import {
  type AnswerShape,
  type FormOffer,
  type IncludeObject,
  type KindDefinition,
  mediaTypesOf,
  type Negotiated,
  negotiate,
  type QueryParameters,
  type Representations,
  statusErrors,
  type WireForm,
} from '@keelson/core';
import type { Exchange } from '../exchange.ts';
import { wantsPretty } from '../parameters/pretty.ts';

/** Accept headers remembered for each kind; clients send few, but may send any. */
const rememberedHeaders = 64;
const longestRemembered = 512;

const includes: readonly IncludeObject[] = ['None', 'Metadata', 'Object'];

/** What an Accept header means for a kind, with the forms that need no look at the query. */
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

/** Chooses how answers about one kind are written: negotiation, `pretty`, `includeObject`. */
export class ResourceForms {
  readonly #kind: KindDefinition;
  readonly #representations: Representations;
  readonly #choices = new Map<string, Choice>();

  constructor(kind: KindDefinition, representations: Representations) {
    this.#kind = kind;
    this.#representations = representations;
  }

  /**
   * The form for a request; `rows` is false where the answer has none that a Table could show.
   * @throws StatusError 406 when no clause of Accept can be served, 400 for a bad `includeObject`.
   */
  of(exchange: Exchange, shape: AnswerShape, rows = true): WireForm {
    const { query } = exchange.attributes;
    const tables = rows && (shape !== 'watch' || query.boolean('sendInitialEvents') !== true);
    const choice = this.#choose(exchange.request.headers.accept ?? '', shape, tables);
    const { offer, target, pretty: prettyClause } = choice.negotiated;
    const pretty = offer.media === 'json' && wantsPretty(exchange, prettyClause);
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
    if (key.length <= longestRemembered) {
      if (this.#choices.size >= rememberedHeaders) this.#choices.clear();
      this.#choices.set(key, choice);
    }
    return choice;
  }
}
