import { apiVersionOf, type DiscoveredResource, type GroupVersion, isStatusError } from '@keelson/core';
import type { APIGroupDiscoveryList, APIGroupList, APIResourceList, APIVersions } from '@keelson/core/internal';
import { ConnectionError } from './connection-error.ts';
import type { HttpTransport } from './http-transport.ts';
import { groupVersionPath } from './resource-path.ts';
import { type DiscoveredRow, sharingVersions, withStorage } from './storage-identity.ts';

const json = 'application/json';
const aggregated = ['v2', 'v2beta1'].map(
  (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
);
const discoveryAccept = [...aggregated, json].join(',');

interface Document {
  readonly aggregated: boolean;
  readonly value: unknown;
}

async function read(transport: HttpTransport, path: string, accept: string): Promise<Document> {
  const { contentType, body } = await transport.send({ method: 'GET', path, accept });
  try {
    return { aggregated: contentType.includes('as=APIGroupDiscoveryList'), value: JSON.parse(body.toString('utf8')) };
  } catch (cause) {
    throw new ConnectionError('BadAnswer', `GET ${path}: the response is not JSON`, cause);
  }
}

/**
 * Reads a document; undefined when it does not exist or the user may not read it. Discovery then continues without it.
 */
async function readIfServed(transport: HttpTransport, path: string, accept: string): Promise<Document | undefined> {
  try {
    return await read(transport, path, accept);
  } catch (error) {
    if (isStatusError(error) && (error.code === 404 || error.code === 403)) return undefined;
    throw error;
  }
}

function aggregatedRows({ items }: APIGroupDiscoveryList): DiscoveredRow[] {
  return items.flatMap(({ metadata, versions }) =>
    versions.flatMap(({ version, resources }) =>
      resources.map((resource) => ({
        group: metadata.name,
        version,
        resource: resource.resource,
        kind: resource.responseKind.kind,
        namespaced: resource.scope === 'Namespaced',
        verbs: resource.verbs,
      })),
    ),
  );
}

async function plainRows(transport: HttpTransport, groupVersion: GroupVersion): Promise<DiscoveredRow[]> {
  const document = await readIfServed(transport, groupVersionPath(groupVersion), json);
  const { resources } = (document?.value ?? { resources: [] }) as APIResourceList;
  return resources
    .filter(({ name }) => !name.includes('/'))
    .map(({ name, kind, namespaced, verbs, storageVersionHash }) => ({
      group: groupVersion.group,
      version: groupVersion.version,
      resource: name,
      kind,
      namespaced,
      verbs,
      ...(storageVersionHash === undefined ? {} : { storageVersionHash }),
    }));
}

async function allPlainRows(transport: HttpTransport): Promise<DiscoveredRow[]> {
  const [core, groups] = await Promise.all(['/api', '/apis'].map((path) => readIfServed(transport, path, json)));
  const { versions } = (core?.value ?? { versions: [] }) as APIVersions;
  const { groups: named } = (groups?.value ?? { groups: [] }) as APIGroupList;
  const served: GroupVersion[] = [
    ...versions.map((version) => ({ group: '', version })),
    ...named.flatMap(({ name, versions: all, preferredVersion }) => {
      const preferred = preferredVersion?.version;
      const sorted = [...all].sort((a, b) => Number(b.version === preferred) - Number(a.version === preferred));
      return sorted.map(({ version }) => ({ group: name, version }));
    }),
  ];
  return (await Promise.all(served.map((groupVersion) => plainRows(transport, groupVersion)))).flat();
}

/**
 * Discovers the resources of a server. Reads the two aggregated documents if the server has both, otherwise one
 * document per group version. The aggregated form contains nothing about storage, so the plain documents of the group
 * versions that may share objects are read too; see {@link withStorage}.
 */
export async function discover(transport: HttpTransport): Promise<DiscoveredResource[]> {
  const documents = await Promise.all(['/api', '/apis'].map((path) => readIfServed(transport, path, discoveryAccept)));
  const present = documents.filter((document) => document !== undefined);
  if (present.length === 0 || present.some((document) => !document.aggregated)) {
    return withStorage(await allPlainRows(transport));
  }
  const rows = present.flatMap(({ value }) => aggregatedRows(value as APIGroupDiscoveryList));
  const details = await Promise.all(sharingVersions(rows).map((groupVersion) => plainRows(transport, groupVersion)));
  const hashes = new Map(details.flat().map((row) => [`${apiVersionOf(row)}/${row.resource}`, row.storageVersionHash]));
  return withStorage(
    rows.map((row) => {
      const storageVersionHash = hashes.get(`${apiVersionOf(row)}/${row.resource}`);
      return storageVersionHash === undefined ? row : { ...row, storageVersionHash };
    }),
  );
}
