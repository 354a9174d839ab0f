import { apiVersionOf, type GroupVersionKind, type KubeObject, type Scope } from '../meta/types.ts';
import { definitionProblems, virtualVerbs } from './define-kind-checks.ts';
import type {
  Column,
  Deprecation,
  KindDefinition,
  KindNames,
  RowCondition,
  SelectableField,
  StorageConversion,
  Verb,
} from './kind-definition.ts';
import { checkMessages } from './message-check.ts';
import { nameMessages } from './name-messages.ts';
import { objectMetaSchema } from './object-meta-schema.ts';
import { type Infer, optional, type Schema } from './schema.ts';
import { messageNode } from './schema-walk.ts';
import type { Strategy } from './strategy.ts';
import type { SubresourceDefinition } from './subresource.ts';
import { typeMetaFields } from './type-meta-fields.ts';
import type { VirtualKind } from './virtual-kind.ts';

/**
 * Plural of a lower-case English word: `ingress` -> `ingresses`, `policy` -> `policies`, `gateway` -> `gateways`.
 * Irregular words need a name of their own in the kind's declaration.
 */
export function pluralOf(word: string): string {
  if (/(?:s|x|z|ch|sh)$/.test(word)) return `${word}es`;
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return `${word}s`;
}

/** A {@link Column} whose description and priority (0, always shown) may be absent. */
export type ColumnOptions<T> = Omit<Column<T>, 'description' | 'priority'> &
  Partial<Pick<Column<T>, 'description' | 'priority'>>;

/** The parameters of `defineKind`. Everything but group, version, kind and schema has a default. */
export interface KindOptions<S extends Schema<unknown>> {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Default `Namespaced`. */
  readonly scope?: Scope;
  /** Defaults: the singular is the kind in lower case, the plural is formed by the rules of English. */
  readonly names?: Partial<KindNames>;
  /**
   * Message with the kind's own fields (`spec`, `status`, `data` ...); apiVersion, kind and metadata (number 1) are
   * added.
   */
  readonly schema: S;
  readonly strategy?: Strategy<SchemaObject<S>>;
  readonly subresources?: readonly SubresourceDefinition[];
  /** What `kubectl get` shows, for example {@link nameColumn}. Default: name and time of creation. */
  readonly columns?: readonly ColumnOptions<SchemaObject<S>>[];
  readonly rowConditions?: (object: SchemaObject<S>) => RowCondition[];
  readonly selectableFields?: readonly SelectableField<SchemaObject<S>>[];
  readonly storage?: StorageConversion<SchemaObject<S>>;
  /** Objects are not stored: they are requests that are only answered, or they are computed. */
  readonly virtual?: VirtualKind<SchemaObject<S>>;
  /** Clients of this version are warned. */
  readonly deprecated?: Deprecation;
  /** The verbs of the kind. Default: all eight; for virtual kinds either `create`, or `get` and `list`. */
  readonly verbs?: readonly Verb[];
  /** False for kinds that teams declare with open schemas: no strategic merge patch. Default true. */
  readonly structural?: boolean;
}

/** The fields of a schema plus apiVersion, kind and metadata. */
type SchemaObject<S extends Schema<unknown>> = KubeObject & Infer<S>;

/**
 * Static type of the objects of a kind, from its declaration or its schema: `ObjectOf<typeof Backup>`. The metadata of
 * an object that was read from a server is not optional: {@link Stored}.
 */
export type ObjectOf<K extends KindDefinition | Schema<unknown>> =
  K extends KindDefinition<infer T> ? T : K extends Schema<unknown> ? SchemaObject<K> : never;

const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

const metadataField = optional(1, objectMetaSchema, 'What names the object and what is attached to it.');

function wholeSchema<S extends Schema<unknown>>(own: S, gvk: GroupVersionKind, where: string): Schema<SchemaObject<S>> {
  const declared = messageNode(own);
  if (!declared) throw new Error(`${where}: the schema must be a message`);
  const message = nameMessages(declared, gvk);
  // The message of a kind whose objects also occur inside other objects has these fields already, and is used in both
  // places.
  if (message.fields['kind'] === typeMetaFields.kind) return { node: message };
  for (const name of ['kind', 'apiVersion', 'metadata']) {
    if (name in message.fields)
      throw new Error(`${where}: the field ${name} is added by itself and must not be declared`);
  }
  return { node: { ...message, fields: { ...typeMetaFields, metadata: metadataField, ...message.fields } } };
}

function namesOf(kind: string, given: Partial<KindNames> = {}): KindNames {
  const word = kind.toLowerCase();
  return Object.freeze({
    plural: given.plural ?? pluralOf(word),
    singular: given.singular ?? word,
    shortNames: Object.freeze([...(given.shortNames ?? [])]),
    categories: Object.freeze([...(given.categories ?? [])]),
  });
}

function selectableFieldsOf<T extends KubeObject>(
  scope: Scope,
  own: readonly SelectableField<T>[],
  where: string,
): ReadonlyMap<string, (object: T) => string> {
  const fields = new Map<string, (object: T) => string>([['metadata.name', (object) => object.metadata?.name ?? '']]);
  if (scope === 'Namespaced') fields.set('metadata.namespace', (object) => object.metadata?.namespace ?? '');
  const declared = new Set<string>();
  for (const [path, value] of own) {
    if (declared.has(path)) throw new Error(`${where}: the selectable field ${path} is declared twice`);
    declared.add(path);
    fields.set(path, value);
  }
  return fields;
}

function warningOf(apiVersion: string, kind: string, { since, removed, replacement }: Deprecation): string {
  const unavailable = removed === undefined ? '' : `, unavailable in v${removed}+`;
  const use = replacement === undefined ? '' : `; use ${replacement}`;
  return `${apiVersion} ${kind} is deprecated in v${since}+${unavailable}${use}`;
}

/**
 * Declares a kind: completes the schema with apiVersion, kind and metadata, fills in what follows from the rest
 * (names, verbs, list kind, protobuf form, generation, status isolation) and freezes the result.
 *
 * @throws Error when the declaration contradicts itself: repeated field numbers, names that cannot stand in a path,
 * a subresource without the field it serves, a status that cannot be written, a hook that would never run, a storage
 * kind that is not one.
 */
export function defineKind<const S extends Schema<unknown>>(options: KindOptions<S>): KindDefinition<SchemaObject<S>> {
  const { group, version, kind } = options;
  const apiVersion = apiVersionOf({ group, version });
  const where = `kind ${kind} of ${apiVersion}`;
  const scope = options.scope ?? 'Namespaced';
  const schema = wholeSchema(options.schema, { group, version, kind }, where);
  const subresources = options.subresources ?? [];
  const implied: Strategy = {
    statusSubresource: subresources.some((subresource) => subresource.type === 'status'),
    generation: !options.virtual && 'spec' in (messageNode(schema)?.fields ?? {}) ? 'spec' : 'none',
  };
  const definition: KindDefinition<SchemaObject<S>> = {
    group,
    version,
    kind,
    apiVersion,
    listKind: `${kind}List`,
    scope,
    names: namesOf(kind, options.names),
    schema,
    verbs: Object.freeze([...(options.verbs ?? (options.virtual ? virtualVerbs(options.virtual) : allVerbs))].sort()),
    strategy: Object.freeze(checkedHooks({ ...implied, ...options.strategy }, kind)),
    subresources: Object.freeze([...subresources]),
    columns: Object.freeze((options.columns ?? []).map((column) => ({ description: '', priority: 0, ...column }))),
    ...(options.rowConditions ? { rowConditions: options.rowConditions } : {}),
    selectableFields: selectableFieldsOf(scope, options.selectableFields ?? [], where),
    ...(options.storage ? { storage: options.storage } : {}),
    ...(options.virtual ? { virtual: options.virtual } : {}),
    ...(options.deprecated ? { deprecationWarning: warningOf(apiVersion, kind, options.deprecated) } : {}),
    protobuf: checkMessages(schema).protobuf,
    structural: options.structural ?? true,
  };
  const [problem] = definitionProblems(definition);
  if (problem !== undefined) throw new Error(`${where}: ${problem}`);
  return Object.freeze(definition);
}

type Hook = (...args: unknown[]) => unknown;

/** Hooks that change the object which they are given. */
const changing = [
  'default',
  'prepareForCreate',
  'prepareForUpdate',
  'prepareForStatusUpdate',
  'beginDeletion',
] as const;
/** Hooks that return all errors of an object. */
const validating = ['validate', 'validateCreate', 'validateUpdate', 'validateStatusUpdate'] as const;

/** What a hook has returned, for messages. */
export function shownResult(result: unknown): string {
  if (result === null || result === undefined) return String(result);
  if (typeof result !== 'object') return `a ${typeof result}`;
  if (typeof (result as { readonly then?: unknown }).then === 'function') return 'a promise';
  return Array.isArray(result) ? 'a list' : 'an object';
}

/**
 * The strategy with hooks whose results are checked: types do not protect programs in JavaScript, and an asynchronous
 * hook would change or reject an object after it was stored. The error becomes a 500 that names the hook and the kind.
 */
function checkedHooks(strategy: Strategy, kind: string): Strategy {
  const checked: Record<string, Hook> = {};
  const check = (name: keyof Strategy, isWrong: (result: unknown) => boolean, wanted: string) => {
    const hook = strategy[name] as Hook | undefined;
    if (hook === undefined) return;
    checked[name] = (...args) => {
      const result = hook.apply(strategy, args);
      if (isWrong(result))
        throw new TypeError(`the hook ${name} of ${kind} returned ${shownResult(result)}; it must ${wanted}`);
      return result;
    };
  };
  for (const name of changing)
    check(name, (result) => result instanceof Promise, 'change the object and return nothing, without waiting');
  for (const name of validating)
    check(
      name,
      (result) => result !== undefined && !Array.isArray(result),
      'return the list of all errors, empty for none, without waiting',
    );
  return { ...strategy, ...checked };
}
