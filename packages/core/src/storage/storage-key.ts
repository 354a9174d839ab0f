import type { KindDefinition } from '../kind/kind-definition.ts';
import type { Key } from './store.ts';

/** The kind whose form the objects of `kind` have in storage. */
export function storageKindOf(kind: KindDefinition): KindDefinition {
  return kind.storage?.kind ?? kind;
}

/**
 * Prefix of all keys of a kind: `/{group or "core"}/{plural}/`. Every segment ends with a slash, so a prefix never
 * reaches into a sibling whose name merely begins alike.
 */
export function kindPrefix(kind: KindDefinition): string {
  const stored = storageKindOf(kind);
  return `/${stored.group === '' ? 'core' : stored.group}/${stored.names.plural}/`;
}

/** Key of one object: the prefix, the namespace and a slash if the kind is namespaced, the name. */
export function objectKey(kind: KindDefinition, namespace: string | undefined, name: string): Key {
  const collection = kind.scope === 'Namespaced' && namespace !== undefined ? `${namespace}/` : '';
  return `${kindPrefix(kind)}${collection}${name}`;
}

/** The name of a selectable field in the version that a kind is stored in. */
export function storedFieldOf({ storage }: KindDefinition, field: string): string {
  const names = storage?.selectableFields ?? {};
  return Object.hasOwn(names, field) ? (names[field] ?? field) : field;
}
