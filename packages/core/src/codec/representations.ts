import type { KindDefinition } from '../kind/kind-definition.ts';
import { apiVersionOf, type GroupVersionKind } from '../meta/types.ts';
import type { Clock } from '../runtime/clock.ts';
import {
  JsonForm,
  type JsonShape,
  metadataOnly,
  partialObjectMetadata,
  RecentBodies,
  wholeObjects,
} from './json-form.ts';
import { type Brand, defaultBrand, type Media, mediaTypeOf } from './media-type.ts';
import type { Offer } from './negotiation.ts';
import { prettyJsonForm, yamlForm } from './printed-form.ts';
import { tableShape } from './table.ts';
import type { FormRequest, FormTarget, WireForm } from './wire-form.ts';

/** Versions of the metadata API in which tables and metadata are served, the newest first. */
export const metaVersions: readonly string[] = ['v1', 'v1beta1'];

/** The type of response that is negotiated. */
export type AnswerShape = 'object' | 'list' | 'watch';

/** An offer and the encoding in which its responses are written. */
export interface FormOffer extends Offer {
  readonly media: Media;
}

/** A medium other than JSON and YAML, which are always available. */
export interface FormBuilder {
  readonly media: Media;
  /** Whether this medium can encode whole objects of the kind. */
  serves(kind: KindDefinition): boolean;
  /**
   * Whether this medium can encode the conversion targets for a kind whose whole objects it cannot encode; default
   * false.
   */
  servesTargets?(kind: KindDefinition): boolean;
  /** Conversion targets that this medium can encode, such as PartialObjectMetadata. Whole objects are not a target. */
  readonly targets: readonly FormTarget['as'][];
  /** True when this medium can encode watch events. */
  readonly streams: boolean;
  form(kind: KindDefinition, request: FormRequest): WireForm;
}

export interface RepresentationsOptions {
  readonly clock: Clock;
  readonly brand?: Brand;
  /** Further media, offered after JSON and YAML. */
  readonly builders?: readonly FormBuilder[];
  /** Memory for response bodies of objects that are read repeatedly. Default 4 MiB. */
  readonly recentBodiesBytes?: number | undefined;
}

/** All forms of all kinds. Forms are created on first use and live as long as their kind. */
export class Representations {
  readonly #clock: Clock;
  readonly #brand: Brand;
  readonly #builders: readonly FormBuilder[];
  readonly #recentBodies: RecentBodies;
  readonly #forms = new WeakMap<KindDefinition, Map<string, WireForm>>();
  readonly #offers = new WeakMap<KindDefinition, Map<string, readonly FormOffer[]>>();

  constructor(options: RepresentationsOptions) {
    this.#clock = options.clock;
    this.#brand = options.brand ?? defaultBrand;
    this.#builders = options.builders ?? [];
    this.#recentBodies = new RecentBodies(options.recentBodiesBytes);
  }

  /**
   * What can be offered for a kind. `tables: false` excludes Tables, for watches that begin with the current state: see
   * docs/reference/api-rules.md#start-of-a-watch.
   */
  offers(kind: KindDefinition, shape: AnswerShape, options: { readonly tables?: boolean } = {}): readonly FormOffer[] {
    // Reviews (virtual kinds with `create`) exist only as responses, so there is nothing that a Table could list.
    const tables = options.tables !== false && kind.virtual?.create === undefined;
    return memo(this.#offers, kind, `${shape} ${tables}`, () => {
      const targets = this.#targets(shape, tables);
      const offer = (media: Media, allowed: readonly GroupVersionKind[]): FormOffer => ({
        media,
        mediaType: mediaTypeOf(media, this.#brand),
        targets: allowed,
        ...(shape === 'watch' ? { stream: 'watch' } : {}),
      });
      const offers = [offer('json', targets), offer('yaml', targets)];
      for (const builder of this.#builders) {
        const whole = builder.serves(kind);
        if (!(whole || builder.servesTargets?.(kind)) || (shape === 'watch' && !builder.streams)) continue;
        const allowed = targets.filter((target) =>
          builder.targets.some((as) => target.kind === as || target.kind === `${as}List`),
        );
        offers.push({ ...offer(builder.media, allowed), ...(whole ? {} : { targetsOnly: true }) });
      }
      return offers;
    });
  }

  /** The form of objects for the conversion that was negotiated; without a conversion, whole objects. */
  target(
    conversion: GroupVersionKind | undefined,
    includeObject: 'None' | 'Metadata' | 'Object' = 'Metadata',
  ): FormTarget {
    if (conversion === undefined) return { as: 'Object' };
    const { version } = conversion;
    return conversion.kind === 'Table'
      ? { as: 'Table', version, includeObject }
      : { as: partialObjectMetadata, version };
  }

  /**
   * The form in which responses about a kind are written. The same request always gives the same instance, so that its
   * encoded bytes are shared.
   */
  form(kind: KindDefinition, request: FormRequest): WireForm {
    const { media, pretty, target } = request;
    const wanted =
      target.as === 'Object' ? '' : `${target.version} ${target.as === 'Table' ? target.includeObject : ''}`;
    return memo(this.#forms, kind, `${media} ${pretty} ${target.as} ${wanted}`, () => this.#build(kind, request));
  }

  #build(kind: KindDefinition, request: FormRequest): WireForm {
    const { media, pretty, target } = request;
    if (media === 'json' && !pretty) return new JsonForm(this.#shape(kind, target), this.#recentBodies);
    if (media !== 'protobuf') {
      const compact = this.form(kind, { media: 'json', pretty: false, target });
      return (media === 'json' ? prettyJsonForm : yamlForm)(this.#shape(kind, target), compact);
    }
    const builder = this.#builders.find(
      (candidate) =>
        candidate.media === media &&
        (candidate.serves(kind) || (target.as !== 'Object' && candidate.servesTargets?.(kind))),
    );
    if (builder === undefined) throw new Error(`${kind.apiVersion} ${kind.kind} has no ${media} form`);
    return builder.form(kind, request);
  }

  #shape(kind: KindDefinition, target: FormTarget): JsonShape {
    if (target.as === 'Object') return wholeObjects(kind);
    const metaApiVersion = apiVersionOf({ group: this.#brand.metaGroup, version: target.version });
    return target.as === 'Table'
      ? tableShape(kind, metaApiVersion, target.includeObject, this.#clock)
      : metadataOnly(kind, metaApiVersion);
  }

  #targets(shape: AnswerShape, tables: boolean): readonly GroupVersionKind[] {
    const kinds = [
      ...(tables ? ['Table'] : []),
      ...(shape === 'list' ? [] : [partialObjectMetadata]),
      ...(shape === 'object' ? [] : [`${partialObjectMetadata}List`]),
    ];
    return metaVersions.flatMap((version) => kinds.map((kind) => ({ group: this.#brand.metaGroup, version, kind })));
  }
}

function memo<T>(cache: WeakMap<KindDefinition, Map<string, T>>, kind: KindDefinition, key: string, make: () => T): T {
  let values = cache.get(kind);
  if (values === undefined) {
    values = new Map();
    cache.set(kind, values);
  }
  let value = values.get(key);
  if (value === undefined) {
    value = make();
    values.set(key, value);
  }
  return value;
}
