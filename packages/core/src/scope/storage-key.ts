import type { KindDefinition } from '../kind/kind-definition.ts';
import type { Key } from '../storage/store.ts';

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

/** Prefix of the objects of a kind in one namespace, or of all when `namespace` is undefined. */
export function collectionPrefix(kind: KindDefinition, namespace: string | undefined): string {
  return namespace === undefined ? kindPrefix(kind) : `${kindPrefix(kind)}${namespace}/`;
}

/** Key of one object. */
export function objectKey(kind: KindDefinition, namespace: string | undefined, name: string): Key {
  return `${collectionPrefix(kind, kind.scope === 'Namespaced' ? namespace : undefined)}${name}`;
}

/** The name of a selectable field in the version that a kind is stored in. */
export function storedFieldOf({ storage }: KindDefinition, field: string): string {
  const names = storage?.selectableFields ?? {};
  return Object.hasOwn(names, field) ? (names[field] ?? field) : field;
}
