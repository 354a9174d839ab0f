import { type Infer, optional, type Schema, s } from '@keelson/core';
import { FieldSelectorAttributesSchema, LabelSelectorAttributesSchema } from '../../v1/schema/attributes.ts';

const resourceAttributes = s.message(
  'k8s.io.api.authorization.v1beta1.ResourceAttributes',
  'A request about objects.',
  {
    namespace: optional(1, s.string(), 'Namespace; empty for cluster-scoped resources and for all namespaces.'),
    verb: optional(2, s.string(), 'What is done, e.g. get or list; `*` means everything.'),
    group: optional(3, s.string(), 'API group; `*` means every group.'),
    version: optional(4, s.string(), 'API version; `*` means every version.'),
    resource: optional(5, s.string(), 'Plural name of the resource; `*` means every resource.'),
    subresource: optional(6, s.string(), 'Subresource, if one is meant.'),
    name: optional(7, s.string(), 'Name of the object; empty means every object.'),
    fieldSelector: optional(
      8,
      FieldSelectorAttributesSchema,
      'Narrows the question to some objects. Rules here know no selectors: all are meant.',
    ),
    labelSelector: optional(
      9,
      LabelSelectorAttributesSchema,
      'Narrows the question to some objects. Rules here know no selectors: all are meant.',
    ),
  },
);
export interface ResourceAttributes extends Infer<typeof resourceAttributes> {}
export const ResourceAttributesSchema: Schema<ResourceAttributes> = resourceAttributes;

const nonResourceAttributes = s.message(
  'k8s.io.api.authorization.v1beta1.NonResourceAttributes',
  'A request about a path that holds no objects.',
  {
    path: optional(1, s.string(), 'Path of the URL.'),
    verb: optional(2, s.string(), 'HTTP method in lower case.'),
  },
);
export interface NonResourceAttributes extends Infer<typeof nonResourceAttributes> {}
export const NonResourceAttributesSchema: Schema<NonResourceAttributes> = nonResourceAttributes;
