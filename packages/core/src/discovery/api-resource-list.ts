import { createHash } from 'node:crypto';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { apiVersionOf, type GroupVersion } from '../meta/types.ts';
import { type ClientWords, clientWords } from './client-words.ts';
import type { APIResource, APIResourceList } from './discovery-types.ts';
import { servedGroups } from './served-groups.ts';
import { subresourceEntries } from './subresource-entry.ts';

/** Identifies the stored form of a resource: see docs/reference/api-rules.md#discovery. */
export function storageVersionHash(kind: KindDefinition): string {
  const stored = kind.storage?.kind ?? kind;
  const digest = createHash('sha256').update(`${stored.group}/${stored.version}/${stored.kind}`).digest();
  return digest.subarray(0, 8).toString('base64');
}

function resourcesOf(kind: KindDefinition, words: ClientWords): APIResource[] {
  const namespaced = kind.scope === 'Namespaced';
  const { plural, singular } = kind.names;
  const main: APIResource = {
    name: plural,
    singularName: singular,
    namespaced,
    kind: kind.kind,
    verbs: kind.verbs,
    ...words,
    ...(kind.virtual ? {} : { storageVersionHash: storageVersionHash(kind) }),
  };
  const subresources = subresourceEntries(kind).map(({ name, kind: body, verbs }): APIResource => {
    // `kubectl scale` selects the version of Scale by these fields, so they are present even when they are redundant.
    const foreign = name === 'scale' || body.group !== kind.group || body.version !== kind.version;
    return {
      name: `${plural}/${name}`,
      singularName: '',
      namespaced,
      ...(foreign ? { group: body.group, version: body.version } : {}),
      kind: body.kind,
      verbs,
    };
  });
  return [main, ...subresources];
}

/** Body of `/api/{version}` or `/apis/{group}/{version}`; undefined when nothing is served there. */
export function apiResourceList(
  kinds: readonly KindDefinition[],
  groupVersion: GroupVersion,
): APIResourceList | undefined {
  const served = servedGroups(kinds)
    .find(({ name }) => name === groupVersion.group)
    ?.versions.find(({ version }) => version === groupVersion.version);
  if (!served) return undefined;
  const words = clientWords(kinds, 'plain');
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf(groupVersion),
    resources: served.kinds.flatMap((kind) => resourcesOf(kind, words(kind))),
  };
}
