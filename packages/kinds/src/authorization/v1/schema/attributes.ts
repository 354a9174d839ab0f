import { always, type Infer, labelSelectorRequirementSchema, optional, type Schema, s } from '@keelson/core';

const fieldSelectorRequirement = s.message(
  'k8s.io.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement',
  'One condition on a field.',
  {
    key: always(1, s.string(), 'Path of the field.'),
    operator: always(2, s.string(), 'In, NotIn, Exists or DoesNotExist.'),
    values: optional(3, s.list(s.string(), { listType: 'atomic' }), 'Values for In and NotIn.'),
  },
);
export interface FieldSelectorRequirement extends Infer<typeof fieldSelectorRequirement> {}
export const FieldSelectorRequirementSchema: Schema<FieldSelectorRequirement> = fieldSelectorRequirement;

const fieldSelectorAttributes = s.message(
  'k8s.io.api.authorization.v1.FieldSelectorAttributes',
  'Field selector that narrows a request.',
  {
    rawSelector: optional(1, s.string(), 'The selector as a query parameter has it.'),
    requirements: optional(2, s.list(FieldSelectorRequirementSchema, { listType: 'atomic' }), 'The selector in parts.'),
  },
);
export interface FieldSelectorAttributes extends Infer<typeof fieldSelectorAttributes> {}
export const FieldSelectorAttributesSchema: Schema<FieldSelectorAttributes> = fieldSelectorAttributes;

const labelSelectorAttributes = s.message(
  'k8s.io.api.authorization.v1.LabelSelectorAttributes',
  'Label selector that narrows a request.',
  {
    rawSelector: optional(1, s.string(), 'The selector as a query parameter has it.'),
    requirements: optional(2, s.list(labelSelectorRequirementSchema, { listType: 'atomic' }), 'The selector in parts.'),
  },
);
export interface LabelSelectorAttributes extends Infer<typeof labelSelectorAttributes> {}
export const LabelSelectorAttributesSchema: Schema<LabelSelectorAttributes> = labelSelectorAttributes;

const resourceAttributes = s.message('k8s.io.api.authorization.v1.ResourceAttributes', 'A request for resources.', {
  namespace: optional(1, s.string(), 'Namespace; empty for cluster-scoped resources and for all namespaces.'),
  verb: optional(2, s.string(), 'What is done, e.g. get or list; `*` means everything.'),
  group: optional(3, s.string(), 'API group; `*` means every group.'),
  version: optional(4, s.string(), 'API version; `*` means every version.'),
  resource: optional(5, s.string(), 'Plural name of the resource; `*` means every resource.'),
  subresource: optional(6, s.string(), 'Subresource; empty for the resource itself.'),
  name: optional(7, s.string(), 'Name of the object; empty means every object.'),
  fieldSelector: optional(8, FieldSelectorAttributesSchema, 'Restricts the request to selected objects.'),
  labelSelector: optional(
    9,
    LabelSelectorAttributesSchema,
    'Restricts the request to selected objects. Ignored by the authorizer.',
  ),
});
export interface ResourceAttributes extends Infer<typeof resourceAttributes> {}
export const ResourceAttributesSchema: Schema<ResourceAttributes> = resourceAttributes;

const nonResourceAttributes = s.message(
  'k8s.io.api.authorization.v1.NonResourceAttributes',
  'A request for a non-resource path.',
  {
    path: optional(1, s.string(), 'Path of the URL.'),
    verb: optional(2, s.string(), 'HTTP method in lower case.'),
  },
);
export interface NonResourceAttributes extends Infer<typeof nonResourceAttributes> {}
export const NonResourceAttributesSchema: Schema<NonResourceAttributes> = nonResourceAttributes;
