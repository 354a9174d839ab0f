import { type Brand, defaultBrand } from '../codec/media-type.ts';
import { servedGroups } from '../discovery/served-groups.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { componentsOf } from './components.ts';
import { defaultInfo, discoveryOperation } from './open-api-document.ts';
import type {
  OpenApiContent,
  OpenApiInfo,
  OpenApiMethod,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiPathItem,
} from './open-api-types.ts';
import { documentPath, resourcePaths } from './resource-paths.ts';
import { swaggerSchema, swaggerSchemas } from './swagger-schema.ts';
import type {
  SwaggerDocument,
  SwaggerOperation,
  SwaggerParameter,
  SwaggerPathItem,
  SwaggerPlainParameter,
  SwaggerResponse,
} from './swagger-types.ts';

const methods: readonly OpenApiMethod[] = ['get', 'put', 'post', 'delete', 'patch'];

function plainParameter({ name, in: place, required, description, schema }: OpenApiParameter): SwaggerPlainParameter {
  const type = schema.type === 'integer' || schema.type === 'boolean' ? schema.type : 'string';
  return { name, in: place, type, uniqueItems: true, ...(required ? { required } : {}), description };
}

function bodyParameter(body: NonNullable<OpenApiOperation['requestBody']>): SwaggerParameter[] {
  const [content] = Object.values(body.content);
  if (content === undefined) return [];
  return [
    { name: 'body', in: 'body', ...(body.required ? { required: true } : {}), schema: swaggerSchema(content.schema) },
  ];
}

function response(content: OpenApiContent | undefined, description: string): SwaggerResponse {
  const [body] = Object.values(content ?? {});
  return { description, ...(body ? { schema: swaggerSchema(body.schema) } : {}) };
}

function operation(from: OpenApiOperation): SwaggerOperation {
  const { parameters = [], requestBody, responses, ...rest } = from;
  const all = [...(requestBody ? bodyParameter(requestBody) : []), ...parameters.map(plainParameter)];
  const answered = Object.values(responses).find(({ content }) => content !== undefined);
  return {
    ...rest,
    consumes: requestBody ? Object.keys(requestBody.content) : ['*/*'],
    produces: Object.keys(answered?.content ?? {}),
    schemes: ['https'],
    ...(all.length > 0 ? { parameters: all } : {}),
    responses: Object.fromEntries(
      Object.entries(responses).map(([code, { description, content }]) => [code, response(content, description)]),
    ),
  };
}

function pathItem(item: OpenApiPathItem): SwaggerPathItem {
  const operations = methods.flatMap((method) => {
    const found = item[method];
    return found ? [[method, operation(found)] as const] : [];
  });
  return {
    ...Object.fromEntries(operations),
    ...(item.parameters ? { parameters: item.parameters.map(plainParameter) } : {}),
  };
}

/**
 * The Swagger 2.0 document of a whole server: every operation and every schema of the OpenAPI v3 documents, in one
 * piece.
 */
export function openApiV2Document(
  kinds: readonly KindDefinition[],
  info: OpenApiInfo = defaultInfo,
  brand: Brand = defaultBrand,
): SwaggerDocument {
  const components = componentsOf(kinds);
  const groupVersions = servedGroups(kinds).flatMap(({ name, versions }) =>
    versions.map(({ version }) => ({ group: name, version })),
  );
  const paths: [string, OpenApiPathItem][] = [
    ...groupVersions.map((groupVersion): [string, OpenApiPathItem] => [
      `/${documentPath(groupVersion)}/`,
      { get: discoveryOperation(groupVersion, brand) },
    ]),
    ...kinds.flatMap((kind) => resourcePaths(kind, components, brand)),
  ];
  paths.sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    swagger: '2.0',
    info,
    paths: Object.fromEntries(paths.map(([path, item]) => [path, pathItem(item)])),
    definitions: swaggerSchemas(components.schemas),
  };
}
