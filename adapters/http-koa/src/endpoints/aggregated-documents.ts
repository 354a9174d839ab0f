import type {
  APIGroup,
  APIGroupDiscovery,
  APIResourceDiscovery,
  APIResourceList,
  APIVersionDiscovery,
} from '@keelson/core/internal';
import type { AggregatedVersion } from '../exchange/aggregated-apis.ts';

function byGroup(versions: readonly AggregatedVersion[]): Map<string, AggregatedVersion[]> {
  const groups = new Map<string, AggregatedVersion[]>();
  for (const version of versions) groups.set(version.group, [...(groups.get(version.group) ?? []), version]);
  return groups;
}

/** Adds versions of other servers to the groups of this server; new groups follow in the order of `versions`. */
export function withAggregatedGroups(
  own: readonly APIGroup[],
  versions: readonly AggregatedVersion[],
  serverAddress: string,
): APIGroup[] {
  const entry = ({ group, version }: AggregatedVersion) => ({ groupVersion: `${group}/${version}`, version });
  const added = byGroup(versions);
  const groups = own.map((group) => {
    const more = (added.get(group.name) ?? []).map(entry);
    added.delete(group.name);
    const known = new Set(group.versions.map(({ version }) => version));
    return { ...group, versions: [...group.versions, ...more.filter(({ version }) => !known.has(version))] };
  });
  for (const [name, [first, ...rest]] of added) {
    if (first === undefined) continue;
    groups.push({
      name,
      versions: [first, ...rest].map(entry),
      preferredVersion: entry(first),
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress }],
    });
  }
  return groups;
}

/** The aggregated form of the resources of a version. */
function discoveredResources({ resources, groupVersion }: APIResourceList): APIResourceDiscovery[] {
  const [group = '', version = ''] = groupVersion.split('/');
  const found = new Map<string, APIResourceDiscovery & { subresources?: { subresource: string }[] }>();
  for (const { name, kind, verbs, namespaced, singularName, shortNames, categories, ...own } of resources) {
    const responseKind = { group: own.group ?? group, version: own.version ?? version, kind };
    const [resource = '', subresource] = name.split('/');
    if (subresource === undefined) {
      found.set(name, {
        resource,
        responseKind,
        scope: namespaced ? 'Namespaced' : 'Cluster',
        singularResource: singularName ?? '',
        verbs,
        ...(shortNames ? { shortNames } : {}),
        ...(categories ? { categories } : {}),
      });
      continue;
    }
    const parent = found.get(resource);
    const entry = { subresource, responseKind, verbs };
    if (parent) found.set(resource, { ...parent, subresources: [...(parent.subresources ?? []), entry] });
  }
  return [...found.values()];
}

/** As {@link withAggregatedGroups}, for the aggregated form of discovery. */
export function withAggregatedDiscovery(
  own: readonly APIGroupDiscovery[],
  versions: readonly AggregatedVersion[],
): APIGroupDiscovery[] {
  const entry = ({ version, resources, stale }: AggregatedVersion): APIVersionDiscovery => ({
    version,
    resources: resources === undefined ? [] : discoveredResources(resources),
    freshness: stale ? 'Stale' : 'Current',
  });
  const added = byGroup(versions);
  const groups = own.map((group) => {
    const more = (added.get(group.metadata.name) ?? []).map(entry);
    added.delete(group.metadata.name);
    const known = new Set(group.versions.map(({ version }) => version));
    return { ...group, versions: [...group.versions, ...more.filter(({ version }) => !known.has(version))] };
  });
  return [...groups, ...[...added].map(([name, list]) => ({ metadata: { name }, versions: list.map(entry) }))];
}
