import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { GroupVersionKind } from '../meta/types.ts';

/** What clients need to know about one subresource of a kind. */
export interface SubresourceEntry {
  readonly name: string;
  /** The kind of its bodies. */
  readonly kind: GroupVersionKind;
  /** Sorted. */
  readonly verbs: readonly Verb[];
}

const verbsOf: Readonly<Record<SubresourceDefinition['type'], readonly Verb[]>> = {
  status: ['get', 'patch', 'update'],
  projection: ['get', 'patch', 'update'],
  replace: ['update'],
  action: ['create'],
};

/** The kind that the bodies of a subresource have: its own, or that of the parent. */
export function subresourceKind(parent: KindDefinition, subresource: SubresourceDefinition): GroupVersionKind {
  const { group, version, kind } =
    subresource.type === 'projection' || subresource.type === 'action' ? subresource.bodyKind : parent;
  return { group, version, kind };
}

/** The subresources of a kind by name, as every form of discovery lists them. */
export function subresourceEntries(parent: KindDefinition): readonly SubresourceEntry[] {
  return parent.subresources
    .map((subresource) => ({
      name: subresource.name,
      kind: subresourceKind(parent, subresource),
      verbs: verbsOf[subresource.type],
    }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
