import type { KindDefinition } from '../kind/kind-definition.ts';
import { apiVersionOf } from '../meta/types.ts';
import type { APIGroup, APIGroupList, APIVersions, ServerAddressByClientCIDR } from './discovery-types.ts';
import { type ServedGroup, servedGroups } from './served-groups.ts';

function everywhere(serverAddress: string): readonly ServerAddressByClientCIDR[] {
  return [{ clientCIDR: '0.0.0.0/0', serverAddress }];
}

function groupEntry(group: ServedGroup, serverAddress: string): APIGroup {
  const entry = (version: string) => ({ groupVersion: apiVersionOf({ group: group.name, version }), version });
  return {
    name: group.name,
    versions: group.versions.map(({ version }) => entry(version)),
    preferredVersion: entry(group.versions[0].version),
    serverAddressByClientCIDRs: everywhere(serverAddress),
  };
}

/** Body of `/api`. `serverAddress` is the `host:port` that clients use. */
export function apiVersions(kinds: readonly KindDefinition[], serverAddress: string): APIVersions {
  const core = servedGroups(kinds).find(({ name }) => name === '');
  return {
    kind: 'APIVersions',
    versions: core?.versions.map(({ version }) => version) ?? [],
    serverAddressByClientCIDRs: everywhere(serverAddress),
  };
}

/** Body of `/apis`: every group but the core group, in the order in which clients should prefer them. */
export function apiGroupList(kinds: readonly KindDefinition[], serverAddress: string): APIGroupList {
  const groups = servedGroups(kinds).filter(({ name }) => name !== '');
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map((group) => groupEntry(group, serverAddress)) };
}

/**
 * Body of `/apis/{group}`; undefined for a group that is not served, and for the core group, which has no such page.
 */
export function apiGroup(
  kinds: readonly KindDefinition[],
  groupName: string,
  serverAddress: string,
): APIGroup | undefined {
  const group = groupName === '' ? undefined : servedGroups(kinds).find(({ name }) => name === groupName);
  return group && { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group, serverAddress) };
}
