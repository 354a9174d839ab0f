import { always, optional, type Schema, type SchemaNode, s } from '@keelson/core';

const apiPackage = 'k8s.io.apiextensions-apiserver.pkg.apis.apiextensions.v1';

/** A rule in the Common Expression Language. */
export interface ValidationRule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
  fieldPath?: string;
  optionalOldSelf?: boolean;
}

/** A JSON Schema as custom resource definitions use it. */
export interface JsonSchemaProps {
  id?: string;
  $schema?: string;
  $ref?: string;
  description?: string;
  type?: string;
  format?: string;
  title?: string;
  default?: unknown;
  maximum?: number;
  exclusiveMaximum?: boolean;
  minimum?: number;
  exclusiveMinimum?: boolean;
  maxLength?: number;
  minLength?: number;
  pattern?: string;
  maxItems?: number;
  minItems?: number;
  uniqueItems?: boolean;
  multipleOf?: number;
  enum?: unknown[];
  maxProperties?: number;
  minProperties?: number;
  required?: string[];
  items?: JsonSchemaProps | JsonSchemaProps[];
  allOf?: JsonSchemaProps[];
  oneOf?: JsonSchemaProps[];
  anyOf?: JsonSchemaProps[];
  not?: JsonSchemaProps;
  properties?: Record<string, JsonSchemaProps>;
  additionalProperties?: JsonSchemaProps | boolean;
  patternProperties?: Record<string, JsonSchemaProps>;
  dependencies?: Record<string, JsonSchemaProps | string[]>;
  additionalItems?: JsonSchemaProps | boolean;
  definitions?: Record<string, JsonSchemaProps>;
  externalDocs?: { description?: string; url?: string };
  example?: unknown;
  nullable?: boolean;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-map-type'?: string;
  'x-kubernetes-validations'?: ValidationRule[];
}

const externalDocs = s.message(`${apiPackage}.ExternalDocumentation`, 'A reference to other documentation.', {
  description: optional(1, s.string(), 'What is documented there.'),
  url: optional(2, s.string(), 'Where it is.'),
});

const validationRule = s.message(`${apiPackage}.ValidationRule`, 'A rule in the Common Expression Language.', {
  rule: always(1, s.string(), 'Expression over self, and over oldSelf in an update; false means invalid.'),
  message: optional(2, s.string(), 'Message of a violation.'),
  messageExpression: optional(3, s.string(), 'Expression that gives the message.'),
  reason: optional(
    4,
    s.string({ values: ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'] }),
    'Reason of the cause in the answer.',
    { presence: true },
  ),
  fieldPath: optional(5, s.string(), 'Path of the field that the answer names.'),
  optionalOldSelf: optional(6, s.bool(), 'The rule is also evaluated when there is no old value.', { presence: true }),
});

const isObject = (json: unknown): boolean => typeof json === 'object' && json !== null && !Array.isArray(json);

/** The schema is recursive, so the nodes of its fields are added after its creation. */
const schemaNode = { type: 'message', name: `${apiPackage}.JSONSchemaProps`, description: 'A JSON Schema.' } as const;

/** @see JsonSchemaProps */
export const JsonSchemaPropsSchema = { node: schemaNode as unknown as SchemaNode } as Schema<JsonSchemaProps>;

function union(message: Schema<unknown>, expected: string, fieldOf: (json: unknown) => string | undefined) {
  return { node: { type: 'union', message, expected, fieldOf } } as Schema<unknown>;
}

const schemaOrArray = union(
  s.message(`${apiPackage}.JSONSchemaPropsOrArray`, 'A schema or a list of schemas.', {
    schema: optional(1, JsonSchemaPropsSchema, 'The schema.'),
    jSONSchemas: optional(2, s.list(JsonSchemaPropsSchema), 'The list.'),
  }),
  'object or array',
  (json) => (Array.isArray(json) ? 'jSONSchemas' : isObject(json) ? 'schema' : undefined),
);
const schemaOrBool = union(
  s.message(`${apiPackage}.JSONSchemaPropsOrBool`, 'A schema or a boolean.', {
    allows: always(1, s.bool(), 'The boolean.'),
    schema: optional(2, JsonSchemaPropsSchema, 'The schema.'),
  }),
  'object or boolean',
  (json) => (typeof json === 'boolean' ? 'allows' : isObject(json) ? 'schema' : undefined),
);
const schemaOrStrings = union(
  s.message(`${apiPackage}.JSONSchemaPropsOrStringArray`, 'A schema or a list of names.', {
    schema: optional(1, JsonSchemaPropsSchema, 'The schema.'),
    property: optional(2, s.list(s.string()), 'The names.'),
  }),
  'object or array',
  (json) => (Array.isArray(json) ? 'property' : isObject(json) ? 'schema' : undefined),
);

const present = { presence: true };
const schemas = s.list(JsonSchemaPropsSchema, { listType: 'atomic' });

Object.assign(schemaNode, {
  fields: {
    id: optional(1, s.string(), 'Not supported.'),
    $schema: optional(2, s.string(), 'Not supported.'),
    $ref: optional(3, s.string(), 'Not supported.', present),
    description: optional(4, s.string(), 'What the value means.'),
    type: optional(5, s.string(), 'object, array, string, integer, number or boolean.'),
    format: optional(6, s.string(), 'Format of a string or number, such as date-time or int64.'),
    title: optional(7, s.string(), 'Title in documentation.'),
    default: optional(8, s.any(), 'Value of an absent field.'),
    maximum: optional(9, s.double(), 'Greatest number.', present),
    exclusiveMaximum: optional(10, s.bool(), 'The maximum itself is too large.'),
    minimum: optional(11, s.double(), 'Least number.', present),
    exclusiveMinimum: optional(12, s.bool(), 'The minimum itself is too small.'),
    maxLength: optional(13, s.int64(), 'Greatest number of characters.', present),
    minLength: optional(14, s.int64(), 'Least number of characters.', present),
    pattern: optional(15, s.string(), 'Regular expression that the string matches somewhere.'),
    maxItems: optional(16, s.int64(), 'Greatest number of items.', present),
    minItems: optional(17, s.int64(), 'Least number of items.', present),
    uniqueItems: optional(18, s.bool(), 'Not supported; use x-kubernetes-list-type: set.'),
    multipleOf: optional(19, s.double(), 'The number is a multiple of this.', present),
    enum: optional(20, s.list(s.any(), { listType: 'atomic' }), 'The permitted values.'),
    maxProperties: optional(21, s.int64(), 'Greatest number of keys.', present),
    minProperties: optional(22, s.int64(), 'Least number of keys.', present),
    required: optional(23, s.list(s.string(), { listType: 'atomic' }), 'Keys that must be present.'),
    items: optional(24, schemaOrArray, 'Schema of the items of a list.'),
    allOf: optional(25, schemas, 'All of these hold.'),
    oneOf: optional(26, schemas, 'Exactly one of these holds.'),
    anyOf: optional(27, schemas, 'At least one of these holds.'),
    not: optional(28, JsonSchemaPropsSchema, 'This does not hold.'),
    properties: optional(29, s.map(JsonSchemaPropsSchema), 'Fields by name.'),
    additionalProperties: optional(30, schemaOrBool, 'Schema of the values of a map.'),
    patternProperties: optional(31, s.map(JsonSchemaPropsSchema), 'Not supported.'),
    dependencies: optional(32, s.map(schemaOrStrings), 'Not supported.'),
    additionalItems: optional(33, schemaOrBool, 'Not supported.'),
    definitions: optional(34, s.map(JsonSchemaPropsSchema), 'Not supported.'),
    externalDocs: optional(35, externalDocs, 'Other documentation.'),
    example: optional(36, s.any(), 'An example.'),
    nullable: optional(37, s.bool(), 'The value may be null.'),
    'x-kubernetes-preserve-unknown-fields': optional(38, s.bool(), 'Unknown fields are kept.', present),
    'x-kubernetes-embedded-resource': optional(39, s.bool(), 'The value is an object with type and metadata.'),
    'x-kubernetes-int-or-string': optional(40, s.bool(), 'The value is an integer or a string.'),
    'x-kubernetes-list-map-keys': optional(
      41,
      s.list(s.string(), { listType: 'atomic' }),
      'Keys of a list of type map.',
    ),
    'x-kubernetes-list-type': optional(42, s.string(), 'atomic, set or map.', present),
    'x-kubernetes-map-type': optional(43, s.string(), 'granular or atomic.', present),
    'x-kubernetes-validations': optional(
      44,
      s.list(validationRule, { listType: 'map', listMapKeys: ['rule'], patchStrategy: 'merge', patchMergeKey: 'rule' }),
      'Rules in the Common Expression Language.',
    ),
  },
});
