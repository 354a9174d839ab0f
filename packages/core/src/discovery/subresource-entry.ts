import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { GroupVersionKind } from '../meta/types.ts';

/** What clients need to know about one subresource of a kind. */
export interface SubresourceEntry {
  readonly name: string;
  /** The kind of the request and response bodies. */
  readonly kind: GroupVersionKind;
  /** Sorted. */
  readonly verbs: readonly Verb[];
}

const whole: readonly Verb[] = ['get', 'patch', 'update'];

function verbsOf(subresource: SubresourceDefinition): readonly Verb[] {
  switch (subresource.type) {
    case 'status':
    case 'projection':
      return whole;
    case 'replace':
      return subresource.patchable ? whole : ['update'];
    case 'action':
      return ['create'];
    case 'connect':
      return subresource.verbs;
  }
}

/** The kind that a subresource is shown with: that of its bodies or options, or that of the parent. */
export function subresourceKind(parent: KindDefinition, subresource: SubresourceDefinition): GroupVersionKind {
  const { group, version, kind } = shownKind(parent, subresource);
  return { group, version, kind };
}

function shownKind(parent: KindDefinition, subresource: SubresourceDefinition): GroupVersionKind {
  switch (subresource.type) {
    case 'projection':
    case 'action':
      return subresource.bodyKind;
    case 'connect':
      return subresource.shownKind ?? subresource.optionsKind;
    default:
      return parent;
  }
}

/** The subresources of a kind by name, as every form of discovery lists them. */
export function subresourceEntries(parent: KindDefinition): readonly SubresourceEntry[] {
  return parent.subresources
    .map((subresource) => ({
      name: subresource.name,
      kind: subresourceKind(parent, subresource),
      verbs: verbsOf(subresource),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
