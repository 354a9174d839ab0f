import type { Writer } from 'protobufjs/minimal.js';
import { library } from '../codec/protobuf/wire.ts';
import type { OpenApiMethod } from './open-api-types.ts';
import type {
  SwaggerBodyParameter,
  SwaggerDocument,
  SwaggerOperation,
  SwaggerParameter,
  SwaggerPathItem,
  SwaggerPlainParameter,
  SwaggerResponse,
  SwaggerSchema,
} from './swagger-types.ts';

/**
 * Field numbers are those of the message types that kubectl decodes (package openapi.v2 of google/gnostic). Only the
 * parts that a document of this server can have are written.
 */

function text(w: Writer, field: number, value: string | undefined): void {
  if (value !== undefined && value !== '') w.uint32((field << 3) | 2).string(value);
}

function texts(w: Writer, field: number, values: readonly string[] | undefined): void {
  for (const value of values ?? []) w.uint32((field << 3) | 2).string(value);
}

function flag(w: Writer, field: number, value: boolean | undefined): void {
  if (value) w.uint32(field << 3).bool(true);
}

function whole(w: Writer, field: number, value: number | undefined): void {
  if (value !== undefined) w.uint32(field << 3).int64(value);
}

function real(w: Writer, field: number, value: number | undefined): void {
  if (value !== undefined) w.uint32((field << 3) | 1).double(value);
}

function message(w: Writer, field: number, write: (w: Writer) => void): void {
  w.uint32((field << 3) | 2).fork();
  write(w);
  w.ldelim();
}

/** One entry of a map: such maps are lists of name and value. */
function named(w: Writer, field: number, name: string, write: (w: Writer) => void): void {
  message(w, field, (entry) => {
    entry.uint32((1 << 3) | 2).string(name);
    message(entry, 2, write);
  });
}

/** Values of any type are encoded as YAML, of which JSON is a subset. */
function any(w: Writer, value: unknown): void {
  text(w, 2, `${JSON.stringify(value)}\n`);
}

function extensions(w: Writer, field: number, owner: object): void {
  for (const [name, value] of Object.entries(owner)) {
    if (name.startsWith('x-') && value !== undefined) named(w, field, name, (inner) => any(inner, value));
  }
}

function writeSchema(w: Writer, schema: SwaggerSchema): void {
  text(w, 1, schema.$ref);
  text(w, 2, schema.format);
  text(w, 3, schema.title);
  text(w, 4, schema.description);
  if (schema.default !== undefined) message(w, 5, (inner) => any(inner, schema.default));
  real(w, 7, schema.maximum);
  real(w, 9, schema.minimum);
  whole(w, 11, schema.maxLength);
  whole(w, 12, schema.minLength);
  text(w, 13, schema.pattern);
  whole(w, 14, schema.maxItems);
  whole(w, 15, schema.minItems);
  texts(w, 19, schema.required);
  for (const value of schema.enum ?? []) message(w, 20, (inner) => any(inner, value));
  const { additionalProperties, type, items, properties } = schema;
  if (additionalProperties)
    message(w, 21, (item) => {
      if (additionalProperties === true) flag(item, 2, true);
      else message(item, 1, (inner) => writeSchema(inner, additionalProperties));
    });
  if (type) message(w, 22, (inner) => text(inner, 1, type));
  if (items) message(w, 23, (item) => message(item, 1, (inner) => writeSchema(inner, items)));
  for (const part of schema.allOf ?? []) message(w, 24, (inner) => writeSchema(inner, part));
  if (properties) message(w, 25, (inner) => writeSchemas(inner, properties));
  extensions(w, 31, schema);
}

function writeSchemas(w: Writer, schemas: Readonly<Record<string, SwaggerSchema>>): void {
  for (const [name, schema] of Object.entries(schemas)) named(w, 1, name, (inner) => writeSchema(inner, schema));
}

function writeBodyParameter(w: Writer, parameter: SwaggerBodyParameter): void {
  text(w, 2, parameter.name);
  text(w, 3, parameter.in);
  flag(w, 4, parameter.required);
  message(w, 5, (inner) => writeSchema(inner, parameter.schema));
}

function writePlainParameter(w: Writer, parameter: SwaggerPlainParameter): void {
  const inQuery = parameter.in === 'query';
  message(w, inQuery ? 3 : 4, (inner) => {
    flag(inner, 1, parameter.required);
    text(inner, 2, parameter.in);
    text(inner, 3, parameter.description);
    text(inner, 4, parameter.name);
    text(inner, inQuery ? 6 : 5, parameter.type);
    flag(inner, inQuery ? 20 : 19, parameter.uniqueItems);
  });
}

/**
 * Writes parameters. Each is nested: ParametersItem contains Parameter, and Parameter contains either the body
 * parameter or another parameter.
 */
function parameters(w: Writer, field: number, list: readonly SwaggerParameter[] | undefined): void {
  for (const parameter of list ?? []) {
    message(w, field, (item) =>
      message(item, 1, (either) =>
        parameter.in === 'body'
          ? message(either, 1, (inner) => writeBodyParameter(inner, parameter))
          : message(either, 2, (inner) => writePlainParameter(inner, parameter)),
      ),
    );
  }
}

function writeResponse(w: Writer, { description, schema }: SwaggerResponse): void {
  text(w, 1, description);
  if (schema) message(w, 2, (item) => message(item, 1, (inner) => writeSchema(inner, schema)));
}

function writeOperation(w: Writer, operation: SwaggerOperation): void {
  texts(w, 1, operation.tags);
  text(w, 3, operation.description);
  text(w, 5, operation.operationId);
  texts(w, 6, operation.produces);
  texts(w, 7, operation.consumes);
  parameters(w, 8, operation.parameters);
  message(w, 9, (responses) => {
    for (const [code, response] of Object.entries(operation.responses)) {
      named(responses, 1, code, (value) => message(value, 1, (inner) => writeResponse(inner, response)));
    }
  });
  texts(w, 10, operation.schemes);
  flag(w, 11, operation.deprecated);
  extensions(w, 13, operation);
}

const methodFields: Readonly<Record<OpenApiMethod, number>> = { get: 2, put: 3, post: 4, delete: 5, patch: 8 };

function writePathItem(w: Writer, item: SwaggerPathItem): void {
  for (const [method, field] of Object.entries(methodFields)) {
    const operation = item[method as OpenApiMethod];
    if (operation) message(w, field, (inner) => writeOperation(inner, operation));
  }
  parameters(w, 9, item.parameters);
}

/** The protobuf form of a Swagger document, which kubectl reads for client-side validation. */
export function encodeSwagger(document: SwaggerDocument): Buffer {
  const w = library().Writer.create();
  text(w, 1, document.swagger);
  message(w, 2, (info) => {
    text(info, 1, document.info.title);
    text(info, 2, document.info.version);
  });
  message(w, 8, (paths) => {
    for (const [path, item] of Object.entries(document.paths))
      named(paths, 2, path, (inner) => writePathItem(inner, item));
  });
  message(w, 9, (definitions) => writeSchemas(definitions, document.definitions));
  return Buffer.from(w.finish());
}
