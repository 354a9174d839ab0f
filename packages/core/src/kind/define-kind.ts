import type { KubeObject, Scope } from '../meta/types.ts';
import type {
  Column,
  KindDefinition,
  KindNames,
  RowCondition,
  SelectableField,
  StorageConversion,
  Verb,
} from './kind-definition.ts';
import type { Infer, Schema } from './schema.ts';
import type { Strategy } from './strategy.ts';
import type { SubresourceDefinition } from './subresource.ts';

/** What `defineKind` takes; everything but group, version, kind and schema has a default. */
export interface KindOptions<S extends Schema<unknown>> {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Default `Namespaced`. */
  readonly scope?: Scope;
  /** Default: lower-case kind, plural by English rules. */
  readonly names?: Partial<KindNames>;
  /** Message with the kind's own fields (`spec`, `status`, `data` ...); apiVersion, kind and metadata (number 1) are added. */
  readonly schema: S;
  readonly strategy?: Strategy<ObjectOf<S>>;
  readonly subresources?: readonly SubresourceDefinition[];
  readonly columns?: readonly Column<ObjectOf<S>>[];
  readonly rowConditions?: (object: ObjectOf<S>) => RowCondition[];
  readonly selectableFields?: readonly SelectableField<ObjectOf<S>>[];
  readonly storage?: StorageConversion<ObjectOf<S>>;
  /** Default: all eight. */
  readonly verbs?: readonly Verb[];
  /** False for kinds that teams declare with open schemas: no strategic merge patch. Default true. */
  readonly structural?: boolean;
}

/** Static type of an object of a kind: its schema's fields plus apiVersion, kind and metadata. */
export type ObjectOf<S extends Schema<unknown>> = KubeObject & Infer<S>;

/** Declares a kind; throws when the declaration contradicts itself. */
export function defineKind<const S extends Schema<unknown>>(options: KindOptions<S>): KindDefinition<ObjectOf<S>> {
  void options;
  throw new Error('to be written');
}
