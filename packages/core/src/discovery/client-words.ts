import type { KindDefinition } from '../kind/kind-definition.ts';
import { storageKindOf } from '../storage/storage-key.ts';
import { servedGroups } from './served-groups.ts';

/** The short names and categories that users may type instead of the name of the resource. */
export interface ClientWords {
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

/** The form of discovery: a document for each version, or all versions in one. */
export type DiscoveryForm = 'plain' | 'aggregated';

/**
 * Short names and categories as discovery shows them. Of kinds in several groups that show the same objects only the
 * one in the preferred group has categories, because otherwise clients list everything of a category twice. The same
 * holds for short names in the aggregated form: every kubectl that reads it warns about a short name that it finds in
 * two groups. The plain form has the short names of every kind, as old clients expect them.
 */
export function clientWords(
  kinds: readonly KindDefinition[],
  form: DiscoveryForm,
): (kind: KindDefinition) => ClientWords {
  const groupOfStored = new Map<KindDefinition, string>();
  for (const { name, versions } of servedGroups(kinds)) {
    for (const kind of versions.flatMap((version) => version.kinds)) {
      const stored = storageKindOf(kind);
      if (!groupOfStored.has(stored)) groupOfStored.set(stored, name);
    }
  }
  return (kind) => {
    const preferred = groupOfStored.get(storageKindOf(kind)) === kind.group;
    const { shortNames, categories } = kind.names;
    return {
      ...(shortNames.length > 0 && (preferred || form === 'plain') ? { shortNames } : {}),
      ...(categories.length > 0 && preferred ? { categories } : {}),
    };
  };
}
