import type { KindDefinition } from '../kind/kind-definition.ts';

/** The kinds of one version of a group. */
export interface ServedVersion {
  readonly version: string;
  /** Sorted by the plural name of the resource. */
  readonly kinds: readonly KindDefinition[];
}

/** An API group as it is served. */
export interface ServedGroup {
  /** '' for the core group. */
  readonly name: string;
  /** Preferred version first: the order in which kinds of the group were registered. */
  readonly versions: readonly [ServedVersion, ...ServedVersion[]];
}

function isStable(version: string): boolean {
  return /^v[1-9][0-9]*$/.test(version);
}

function byPlural(a: KindDefinition, b: KindDefinition): number {
  return a.names.plural < b.names.plural ? -1 : a.names.plural > b.names.plural ? 1 : 0;
}

/**
 * Sorts kinds (given in registration order) into groups and versions. The core group comes first, then groups with a
 * stable version, then those that only have alpha or beta versions; otherwise registration order holds. Clients
 * resolve a resource name without a group to the first group that serves it, so `deployments` means apps/v1 even if
 * extensions/v1beta1 was registered first.
 */
export function servedGroups(kinds: readonly KindDefinition[]): readonly ServedGroup[] {
  const groups = new Map<string, Map<string, KindDefinition[]>>();
  for (const kind of kinds) {
    const versions = groups.get(kind.group) ?? new Map<string, KindDefinition[]>();
    groups.set(kind.group, versions);
    const served = versions.get(kind.version);
    if (served) served.push(kind);
    else versions.set(kind.version, [kind]);
  }
  const rank = (group: ServedGroup): number => {
    if (group.name === '') return 0;
    return group.versions.some(({ version }) => isStable(version)) ? 1 : 2;
  };
  return [...groups]
    .flatMap(([name, versions]): ServedGroup[] => {
      const [first, ...rest] = [...versions].map(([version, list]) => ({ version, kinds: list.sort(byPlural) }));
      return first ? [{ name, versions: [first, ...rest] }] : [];
    })
    .sort((a, b) => rank(a) - rank(b));
}
