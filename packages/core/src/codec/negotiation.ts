import type { GroupVersionKind } from '../meta/types.ts';
import { type MediaRange, parseMediaRange, splitOutsideQuotes } from './media-type.ts';

/** A form in which an answer could be written. */
export interface Offer {
  /** `type/subtype`, lower case. */
  readonly mediaType: string;
  /** Kinds that `as`, `g` and `v` may request in this media type, for example Table. */
  readonly targets?: readonly GroupVersionKind[];
  /**
   * Value of the media type parameter `stream` for which this form is offered: `watch` for watches. Absent: the form is
   * not offered to a clause with this parameter.
   */
  readonly stream?: string;
  /** True when the media type is available only with a conversion to one of `targets`. */
  readonly targetsOnly?: boolean;
}

/** The form of the response. */
export interface Negotiated<O extends Offer = Offer> {
  readonly offer: O;
  /** The conversion that the matching clause of the Accept header requested. */
  readonly target?: GroupVersionKind;
  /** The parameter `pretty` of the matching clause of the Accept header, if it has one. */
  readonly pretty?: boolean;
  /** The parameter `stream` of the matching clause of the Accept header, if it has one. */
  readonly stream?: string;
}

interface Clause extends MediaRange {
  readonly quality: number;
}

/**
 * Chooses the form of the response by an Accept header: see docs/reference/api-rules.md#content-negotiation.
 *
 * @returns undefined when nothing can be served: 406.
 */
export function negotiate<O extends Offer>(
  accept: string | undefined,
  offers: readonly O[],
): Negotiated<O> | undefined {
  const first = offers[0];
  if (accept === undefined || accept.trim() === '') return first && { offer: first };
  // Most clients send an Accept header that is exactly one media type.
  if (first !== undefined && accept === first.mediaType) return { offer: first };
  const clauses = parseAccept(accept);
  const excluded = new Set(clauses.filter((clause) => clause.quality === 0).map((clause) => clause.mediaType));
  for (const clause of clauses) {
    if (clause.quality === 0) continue;
    for (const offer of offers) {
      if (!matches(clause.mediaType, offer.mediaType)) continue;
      if (clause.mediaType !== offer.mediaType && excluded.has(offer.mediaType)) continue;
      const negotiated = fit(clause, offer);
      if (negotiated) return negotiated;
    }
  }
  return undefined;
}

/** Media types of offers, as 406 and 415 messages name them. */
export function mediaTypesOf(offers: readonly Offer[]): string[] {
  return offers
    .filter((offer) => !offer.targetsOnly)
    .map((offer) => (offer.stream === undefined ? offer.mediaType : `${offer.mediaType};stream=${offer.stream}`));
}

/** Clauses of an Accept header in the order of precedence; invalid media ranges are omitted. */
function parseAccept(accept: string): Clause[] {
  const clauses: Clause[] = [];
  for (const text of splitOutsideQuotes(accept, ',')) {
    const range = parseMediaRange(text);
    if (range) clauses.push({ ...range, quality: qualityOf(range.parameters.get('q')) });
  }
  return clauses.sort((a, b) => b.quality - a.quality);
}

function qualityOf(text: string | undefined): number {
  if (text === undefined) return 1;
  const quality = Number(text);
  return text !== '' && quality >= 0 && quality <= 1 ? quality : 1;
}

function matches(range: string, mediaType: string): boolean {
  if (range === mediaType || range === '*/*') return true;
  return range.endsWith('/*') && mediaType.startsWith(range.slice(0, -1));
}

function fit<O extends Offer>(clause: Clause, offer: O): Negotiated<O> | undefined {
  const { parameters } = clause;
  if (parameters.size === 0) return offer.targetsOnly ? undefined : { offer };
  const stream = parameters.get('stream');
  if (stream !== undefined && stream !== offer.stream) return undefined;
  let target: GroupVersionKind | undefined;
  if (parameters.has('as') || parameters.has('g') || parameters.has('v')) {
    target = offer.targets?.find(
      (candidate) =>
        candidate.kind === parameters.get('as') &&
        candidate.group === (parameters.get('g') ?? '') &&
        candidate.version === parameters.get('v'),
    );
    if (target === undefined) return undefined;
  } else if (offer.targetsOnly) return undefined;
  const pretty = parameters.get('pretty');
  return {
    offer,
    ...(target ? { target } : {}),
    ...(pretty === undefined ? {} : { pretty: pretty === '1' || pretty.toLowerCase() === 'true' }),
    ...(stream === undefined ? {} : { stream }),
  };
}
