import type { KindDefinition } from '../kind/kind-definition.ts';
import { storageKindOf } from '../scope/storage-key.ts';
import { servedGroups } from './served-groups.ts';

/** What people type instead of a resource, as far as there is any. */
export interface ClientWords {
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

/**
 * Short names and categories as discovery shows them. Of kinds in several groups that show the same objects only the one in the
 * preferred group has them: otherwise clients warn that a short name is ambiguous, and list everything of a category twice.
 */
export function clientWords(kinds: readonly KindDefinition[]): (kind: KindDefinition) => ClientWords {
  const groupOfStored = new Map<KindDefinition, string>();
  for (const { name, versions } of servedGroups(kinds)) {
    for (const kind of versions.flatMap((version) => version.kinds)) {
      const stored = storageKindOf(kind);
      if (!groupOfStored.has(stored)) groupOfStored.set(stored, name);
    }
  }
  return (kind) => {
    if (groupOfStored.get(storageKindOf(kind)) !== kind.group) return {};
    const { shortNames, categories } = kind.names;
    return { ...(shortNames.length > 0 ? { shortNames } : {}), ...(categories.length > 0 ? { categories } : {}) };
  };
}
