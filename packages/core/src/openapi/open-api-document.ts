import { type Brand, defaultBrand } from '../codec/media-type.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { GroupVersion } from '../meta/types.ts';
import { documentTypes } from './answer-types.ts';
import { componentsOf } from './components.ts';
import { metaComponents, refTo } from './meta-schemas.ts';
import type {
  OpenApiDocument,
  OpenApiInfo,
  OpenApiOperation,
  OpenApiPathItem,
  OpenApiV3Index,
} from './open-api-types.ts';
import { tagOf } from './operation-id.ts';
import { documentPath, resourcePaths } from './resource-paths.ts';

/** Title and version of the documents when the server does not specify them. */
export const defaultInfo: OpenApiInfo = { title: 'Keelson', version: 'unversioned' };

/** GET of the list of resources of a group version. */
export function discoveryOperation(groupVersion: GroupVersion, brand: Brand = defaultBrand): OpenApiOperation {
  const tag = tagOf(groupVersion);
  const name = tag
    .split('_')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
  const schema = refTo(metaComponents.apiResourceList);
  const content = Object.fromEntries(documentTypes(brand).map((type) => [type, { schema }]));
  return {
    tags: [tag],
    description: 'Lists the resources of this group version.',
    operationId: `get${name}APIResources`,
    responses: { '200': { description: 'OK', content }, '401': { description: 'Unauthorized' } },
  };
}

/**
 * The OpenAPI 3.0 document of one group version: every operation of every kind, and the schemas they use. Kinds of
 * other group versions are omitted. It contains what kubectl requires: see docs/reference/api-rules.md#openapi.
 */
export function openApiV3Document(
  groupVersion: GroupVersion,
  kinds: readonly KindDefinition[],
  info: OpenApiInfo = defaultInfo,
  brand: Brand = defaultBrand,
): OpenApiDocument {
  const served = kinds.filter(({ group, version }) => group === groupVersion.group && version === groupVersion.version);
  const components = componentsOf(served);
  const paths: [string, OpenApiPathItem][] = [
    [`/${documentPath(groupVersion)}/`, { get: discoveryOperation(groupVersion, brand) }],
    ...served.flatMap((kind) => resourcePaths(kind, components, brand)),
  ];
  paths.sort(([a], [b]) => (a < b ? -1 : 1));
  return { openapi: '3.0.0', info, paths: Object.fromEntries(paths), components: { schemas: components.schemas } };
}

/**
 * The index of documents: where each group version's document is. `hashes` are content hashes by group version; a URL
 * with its hash may be cached for ever. `prefix` is the path below which the server is mounted.
 */
export function openApiV3Index(
  documents: Iterable<readonly [groupVersion: GroupVersion, hash: string]>,
  prefix = '',
): OpenApiV3Index {
  const paths: Record<string, { serverRelativeURL: string }> = {};
  for (const [groupVersion, hash] of documents) {
    const path = documentPath(groupVersion);
    paths[path] = { serverRelativeURL: `${prefix}/openapi/v3/${path}?hash=${hash}` };
  }
  return { paths };
}
