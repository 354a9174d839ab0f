import {
  always,
  defineKind,
  filled,
  type Infer,
  type KindDefinition,
  type KubeObject,
  optional,
  type Schema,
  s,
} from '@keelson/core';

const apiPackage = 'k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1';

const names = s.message(`${apiPackage}.CustomResourceDefinitionNames`, 'The names of a kind.', {
  plural: always(1, s.string(), 'Lower-case plural, the path segment.'),
  singular: optional(2, s.string(), 'Lower-case singular.'),
  shortNames: optional(3, s.list(s.string()), 'Short forms for command lines.'),
  kind: always(4, s.string(), 'Name of the kind in objects.'),
  listKind: optional(5, s.string(), 'Name of the kind of lists.'),
  categories: optional(6, s.list(s.string()), 'Groups of resources, such as all.'),
});

const version = s.message(`${apiPackage}.CustomResourceDefinitionVersion`, 'One version of a kind.', {
  name: always(1, s.string(), 'Name of the version.'),
  served: always(2, s.bool(), 'Whether it is served.'),
  storage: always(3, s.bool(), 'Whether objects are stored in it.'),
});

const spec = s.message(`${apiPackage}.CustomResourceDefinitionSpec`, 'A kind in all its versions.', {
  group: always(1, s.string(), 'API group.'),
  names: filled(3, names, 'Names of the kind.'),
  scope: always(4, s.string(), 'Namespaced or Cluster.'),
  versions: always(7, s.list(version), 'Versions, the preferred one first.'),
});

const definition = s.message(`${apiPackage}.CustomResourceDefinition`, 'A kind that is declared through the API.', {
  spec: filled(2, spec, 'What is declared.'),
});
interface CustomResourceDefinitionType extends KubeObject, Infer<typeof definition> {}
const schema: Schema<CustomResourceDefinitionType> = definition;

/**
 * A read-only kind without objects. Kinds are declared in code, so the list is always empty. It exists because clients
 * that list CustomResourceDefinitions do not handle an error.
 */
export const CustomResourceDefinition: KindDefinition<CustomResourceDefinitionType> = defineKind({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  scope: 'Cluster',
  names: { shortNames: ['crd', 'crds'], categories: ['api-extensions'] },
  schema,
  strategy: { allowUnconditionalUpdate: false },
  verbs: ['get', 'list', 'watch'],
});
export type CustomResourceDefinition = CustomResourceDefinitionType;
