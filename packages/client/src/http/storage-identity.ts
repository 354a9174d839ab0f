import { createHash } from 'node:crypto';
import type { DiscoveredResource, GroupVersion, GroupVersionKind } from '@keelson/core';

/** A resource as described by a server. */
export interface DiscoveredRow extends Omit<DiscoveredResource, 'storage'> {
  /**
   * Equal for two resources exactly when they represent the same objects: see docs/reference/api-rules.md#discovery.
   */
  readonly storageVersionHash?: string;
}

function hashOf({ group, version, kind }: GroupVersionKind): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64');
}

/** The group versions of resources whose kind has the name of another resource's kind. Only these can share objects. */
export function sharingVersions(rows: readonly DiscoveredRow[]): GroupVersion[] {
  const byKind = groupByKind(rows);
  const found = new Map<string, GroupVersion>();
  for (const same of byKind.values()) {
    if (same.length < 2) continue;
    for (const { group, version } of same) found.set(`${group}/${version}`, { group, version });
  }
  return [...found.values()];
}

function groupByKind(rows: readonly DiscoveredRow[]): Map<string, DiscoveredRow[]> {
  const byKind = new Map<string, DiscoveredRow[]>();
  for (const row of rows) {
    const same = byKind.get(row.kind);
    if (same) same.push(row);
    else byKind.set(row.kind, [row]);
  }
  return byKind;
}

/**
 * Determines for each resource the name under which its objects are stored. Resources with the same storage hash share
 * their objects; the name is that of the resource whose own group, version and kind produce this hash, or the first one
 * if that resource is not served. Without hashes the only safe assumption is that the versions of one group share a
 * resource of the same name.
 */
export function withStorage(rows: readonly DiscoveredRow[]): DiscoveredResource[] {
  const byHash = new Map<string, { readonly group: string; readonly resource: string }>();
  for (const { group, resource, storageVersionHash } of rows) {
    if (storageVersionHash !== undefined && !byHash.has(storageVersionHash))
      byHash.set(storageVersionHash, { group, resource });
  }
  for (const row of rows) {
    if (row.storageVersionHash !== undefined && row.storageVersionHash === hashOf(row)) {
      byHash.set(row.storageVersionHash, { group: row.group, resource: row.resource });
    }
  }
  return rows.map(({ storageVersionHash, ...row }) => ({
    ...row,
    storage: (storageVersionHash === undefined ? undefined : byHash.get(storageVersionHash)) ?? {
      group: row.group,
      resource: row.resource,
    },
  }));
}
