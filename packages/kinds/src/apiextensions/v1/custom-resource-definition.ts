import {
  always,
  defineKind,
  embedded,
  filled,
  type Infer,
  type KindDefinition,
  type KubeObject,
  optional,
  required,
  type Schema,
  s,
} from '@keelson/core';
import { JsonSchemaPropsSchema } from './json-schema-props.ts';

const apiPackage = 'k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1';
const message = <const F extends Parameters<typeof s.message>[2]>(name: string, description: string, fields: F) =>
  s.message(`${apiPackage}.${name}`, description, fields);
const words = () => s.list(s.string(), { listType: 'atomic' });

const names = message('CustomResourceDefinitionNames', 'The names of a kind.', {
  plural: always(1, s.string(), 'Lower-case plural, the path segment.'),
  singular: optional(2, s.string(), 'Lower-case singular; default: the kind in lower case.'),
  shortNames: optional(3, words(), 'Short forms for command lines.'),
  kind: always(4, s.string(), 'Name of the kind in objects.'),
  listKind: optional(5, s.string(), 'Name of the kind of lists; default: the kind and "List".'),
  categories: optional(6, words(), 'Groups of resources, such as all.'),
});

const column = message('CustomResourceColumnDefinition', 'A column of tables.', {
  name: always(1, s.string(), 'Heading.'),
  type: always(2, s.string(), 'integer, number, string, boolean or date.'),
  format: optional(3, s.string(), 'Format of a number or string, such as int32 or password.'),
  description: optional(4, s.string(), 'What the column shows.'),
  priority: optional(5, s.int32(), 'Columns above 0 are shown in wide output only.'),
  jsonPath: always(6, s.string(), 'Path of the value in the object.'),
});

const scale = message('CustomResourceSubresourceScale', 'Where the replicas are.', {
  specReplicasPath: always(1, s.string(), 'Path of the desired number, under .spec.'),
  statusReplicasPath: always(2, s.string(), 'Path of the observed number, under .status.'),
  labelSelectorPath: optional(3, s.string(), 'Path of the selector as a string.', { presence: true }),
});

const subresources = message('CustomResourceSubresources', 'Subresources of a version.', {
  status: optional(1, message('CustomResourceSubresourceStatus', 'The status subresource.', {}), 'Serves status.'),
  scale: optional(2, scale, 'Serves scale.'),
});

const version = message('CustomResourceDefinitionVersion', 'One version of a kind.', {
  name: always(1, s.string(), 'Name of the version.'),
  served: always(2, s.bool(), 'Whether it is served.'),
  storage: always(3, s.bool(), 'Whether objects are stored in it; true for exactly one version.'),
  deprecated: optional(7, s.bool(), 'Clients of this version are warned.'),
  deprecationWarning: optional(8, s.string(), 'Text of the warning.', { presence: true }),
  schema: optional(
    4,
    message('CustomResourceValidation', 'The schema of a version.', {
      openAPIV3Schema: optional(1, JsonSchemaPropsSchema, 'The schema.'),
    }),
    'Schema of the objects.',
  ),
  subresources: optional(5, subresources, 'Subresources.'),
  additionalPrinterColumns: optional(6, s.list(column, { listType: 'atomic' }), 'Columns of tables beside the name.'),
  selectableFields: optional(
    9,
    s.list(message('SelectableField', 'A field.', { jsonPath: always(1, s.string(), 'Simple path of the field.') }), {
      listType: 'atomic',
    }),
    'Fields that field selectors may use, at most eight.',
  ),
});

const service = message('ServiceReference', 'A service.', {
  namespace: always(1, s.string(), 'Namespace of the service.'),
  name: always(2, s.string(), 'Name of the service.'),
  path: optional(3, s.string(), 'Path of the URL.', { presence: true }),
  port: optional(4, s.int32(), 'Port; default 443.', { presence: true }),
});

const conversion = message('CustomResourceConversion', 'How objects are converted between versions.', {
  strategy: always(1, s.string(), 'None or Webhook.'),
  webhook: optional(
    2,
    message('WebhookConversion', 'The webhook that converts.', {
      clientConfig: optional(
        2,
        message('WebhookClientConfig', 'How the webhook is called.', {
          url: optional(3, s.string(), 'Address; excludes service.', { presence: true }),
          service: optional(1, service, 'Service; excludes url.'),
          caBundle: optional(2, s.bytes(), 'Authorities of the certificate of the webhook, PEM.'),
        }),
        'How the webhook is called.',
      ),
      conversionReviewVersions: always(3, words(), 'Versions of ConversionReview that the webhook understands.'),
    }),
    'The webhook that converts.',
  ),
});

const spec = message('CustomResourceDefinitionSpec', 'A kind in all its versions.', {
  group: always(1, s.string(), 'API group.'),
  names: embedded(3, names, 'Names of the kind.'),
  scope: always(4, s.string(), 'Namespaced or Cluster.'),
  versions: always(7, s.list(version, { listType: 'atomic' }), 'Versions.'),
  conversion: optional(9, conversion, 'How objects are converted between versions.'),
  preserveUnknownFields: optional(10, s.bool(), 'Must be false.'),
});

const condition = message('CustomResourceDefinitionCondition', 'One observed condition of the definition.', {
  type: always(1, s.string(), 'NamesAccepted, Established or Terminating.'),
  status: always(2, s.string(), 'True, False or Unknown.'),
  lastTransitionTime: optional(3, s.time(), 'When the status changed.'),
  reason: optional(4, s.string(), 'Reason in one word.'),
  message: optional(5, s.string(), 'Human-readable message about the last transition.'),
});

const status = message('CustomResourceDefinitionStatus', 'The observed state.', {
  conditions: optional(1, s.list(condition, { listType: 'map', listMapKeys: ['type'] }), 'Aspects of the state.'),
  acceptedNames: optional(2, names, 'The names that are in use.'),
  storedVersions: optional(3, words(), 'Versions in which objects may be stored.'),
});

const definition = message('CustomResourceDefinition', 'A kind that is declared through the API.', {
  spec: required(2, spec, 'What is declared.'),
  status: filled(3, status, 'The observed state.'),
});
interface CustomResourceDefinitionType extends KubeObject, Infer<typeof definition> {}
const schema: Schema<CustomResourceDefinitionType> = definition;

/** A version of a custom resource definition. */
export type CustomResourceDefinitionVersion = CustomResourceDefinitionType['spec']['versions'][number];

function defaultDefinition({ spec }: CustomResourceDefinitionType): void {
  const { names, conversion } = spec;
  if (!names.singular && names.kind) names.singular = names.kind.toLowerCase();
  if (!names.listKind && names.kind) names.listKind = `${names.kind}List`;
  if (conversion === undefined) spec.conversion = { strategy: 'None' };
  const service = conversion?.webhook?.clientConfig?.service;
  if (service !== undefined) service.port ??= 443;
}

/**
 * A kind that is declared through the API. Validation and the effect of its objects are in the package `extensions`,
 * which completes this definition.
 */
export const CustomResourceDefinition: KindDefinition<CustomResourceDefinitionType> = defineKind({
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  scope: 'Cluster',
  names: { shortNames: ['crd', 'crds'], categories: ['api-extensions'] },
  schema,
  strategy: { allowUnconditionalUpdate: false, default: defaultDefinition, generation: 'spec' },
  subresources: [{ type: 'status', name: 'status' }],
});
export type CustomResourceDefinition = CustomResourceDefinitionType;
