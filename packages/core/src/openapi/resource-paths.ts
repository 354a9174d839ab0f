import { type Brand, defaultBrand } from '../codec/media-type.ts';
import type { ConnectSubresource } from '../kind/connect.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { GroupVersion } from '../meta/types.ts';
import type { Components } from './components.ts';
import type { OpenApiOperation, OpenApiParameter, OpenApiPathItem } from './open-api-types.ts';
import { connectMethods, OperationBuilder } from './operation-builder.ts';
import { connectParameters, pathParameters } from './parameters.ts';

/** Key of a group version in the index of documents: `api/v1`, `apis/apps/v1`. */
export function documentPath({ group, version }: GroupVersion): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

/** Drops absent operations; undefined when none is left. */
function pathItem(
  parameters: readonly OpenApiParameter[],
  operations: Readonly<Record<string, OpenApiOperation | undefined>>,
): OpenApiPathItem | undefined {
  const present = Object.entries(operations).filter(([, operation]) => operation !== undefined);
  return present.length === 0 ? undefined : { ...Object.fromEntries(present), parameters };
}

function subresourceItem(
  build: OperationBuilder,
  subresource: SubresourceDefinition,
  parameters: readonly OpenApiParameter[],
): OpenApiPathItem | undefined {
  switch (subresource.type) {
    case 'status':
    case 'projection':
      return pathItem(parameters, {
        get: build.read(subresource),
        put: build.replace(subresource),
        patch: build.patch(subresource),
      });
    case 'replace':
      return pathItem(parameters, {
        get: subresource.patchable ? build.read(subresource) : undefined,
        put: build.replace(subresource),
        patch: subresource.patchable ? build.patch(subresource) : undefined,
      });
    case 'action':
      return pathItem(parameters, { post: build.act(subresource) });
    case 'connect':
      return connectItem(build, subresource, parameters, false);
  }
}

function connectItem(
  build: OperationBuilder,
  subresource: ConnectSubresource,
  parameters: readonly OpenApiParameter[],
  withPath: boolean,
): OpenApiPathItem | undefined {
  return pathItem(
    [...parameters, ...(withPath ? [pathParameters.tail] : []), ...connectParameters(subresource.parameters)],
    Object.fromEntries(
      subresource.verbs.map((verb) => [connectMethods[verb], build.connect(subresource, verb, withPath)]),
    ),
  );
}

/** Every path of a kind with its operations, in the order in which documents show them. */
export function resourcePaths(
  kind: KindDefinition,
  components: Components,
  brand: Brand = defaultBrand,
): [path: string, item: OpenApiPathItem][] {
  const build = new OperationBuilder(kind, components, brand);
  const root = `/${documentPath(kind)}`;
  const { plural } = kind.names;
  const namespaced = kind.scope === 'Namespaced';
  const scopePath = namespaced ? `namespaces/{namespace}/${plural}` : plural;
  const { pretty } = pathParameters;
  const inScope = namespaced ? [pathParameters.namespace, pretty] : [pretty];
  const named = [pathParameters.name(kind.kind), ...inScope];
  const has = (verb: KindDefinition['verbs'][number]) => kind.verbs.includes(verb);

  const items: [string, OpenApiPathItem | undefined][] = [
    [
      `${root}/${scopePath}`,
      pathItem(inScope, {
        get: has('list') ? build.list(false) : undefined,
        post: has('create') ? build.create() : undefined,
        delete: has('deletecollection') ? build.deleteCollection() : undefined,
      }),
    ],
    [
      `${root}/${scopePath}/{name}`,
      pathItem(named, {
        get: has('get') ? build.read() : undefined,
        put: has('update') ? build.replace() : undefined,
        delete: has('delete') ? build.delete() : undefined,
        patch: has('patch') ? build.patch() : undefined,
      }),
    ],
    ...kind.subresources.map((subresource): [string, OpenApiPathItem | undefined] => [
      `${root}/${scopePath}/{name}/${subresource.name}`,
      subresourceItem(build, subresource, named),
    ]),
    ...kind.subresources.flatMap((subresource): [string, OpenApiPathItem | undefined][] =>
      subresource.type === 'connect' && subresource.tail
        ? [[`${root}/${scopePath}/{name}/${subresource.name}/{path}`, connectItem(build, subresource, named, true)]]
        : [],
    ),
    [`${root}/watch/${scopePath}`, pathItem(inScope, { get: has('watch') ? build.watch('list') : undefined })],
    [`${root}/watch/${scopePath}/{name}`, pathItem(named, { get: has('watch') ? build.watch('object') : undefined })],
  ];
  if (namespaced) {
    items.push(
      [`${root}/${plural}`, pathItem([pretty], { get: has('list') ? build.list(true) : undefined })],
      [`${root}/watch/${plural}`, pathItem([pretty], { get: has('watch') ? build.watch('everywhere') : undefined })],
    );
  }
  return items.flatMap(([path, item]): [string, OpenApiPathItem][] => (item ? [[path, item]] : []));
}
