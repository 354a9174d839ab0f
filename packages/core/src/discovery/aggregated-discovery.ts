import type { KindDefinition } from '../kind/kind-definition.ts';
import type { GroupVersionKind } from '../meta/types.ts';
import { type ClientWords, clientWords } from './client-words.ts';
import type {
  AggregatedDiscoveryVersion,
  APIGroupDiscoveryList,
  APIResourceDiscovery,
  APISubresourceDiscovery,
} from './discovery-types.ts';
import { servedGroups } from './served-groups.ts';
import { subresourceEntries } from './subresource-entry.ts';

/** Content-Type of the aggregated form. Clients compare the parameters, so they must be repeated exactly. */
export function aggregatedDiscoveryMediaType(version: AggregatedDiscoveryVersion): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}

function gvkOf({ group, version, kind }: GroupVersionKind): GroupVersionKind {
  return { group, version, kind };
}

function resourceOf(kind: KindDefinition, words: ClientWords): APIResourceDiscovery {
  const { plural, singular } = kind.names;
  const subresources = subresourceEntries(kind).map(
    ({ name, kind: body, verbs }): APISubresourceDiscovery => ({ subresource: name, responseKind: body, verbs }),
  );
  return {
    resource: plural,
    responseKind: gvkOf(kind),
    scope: kind.scope,
    singularResource: singular,
    verbs: kind.verbs,
    ...words,
    ...(subresources.length > 0 ? { subresources } : {}),
  };
}

/**
 * The aggregated form of `/api` (`part: 'core'`) or `/apis` (`part: 'groups'`). A server must offer both or neither:
 * clients that get only one of them read everything again in the plain form.
 */
export function apiGroupDiscoveryList(
  kinds: readonly KindDefinition[],
  part: 'core' | 'groups',
  version: AggregatedDiscoveryVersion,
): APIGroupDiscoveryList {
  const words = clientWords(kinds, 'aggregated');
  const groups = servedGroups(kinds).filter(({ name }) => (name === '') === (part === 'core'));
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map((group) => ({
      metadata: { name: group.name },
      versions: group.versions.map((served) => ({
        version: served.version,
        resources: served.kinds.map((kind) => resourceOf(kind, words(kind))),
        freshness: 'Current',
      })),
    })),
  };
}
