import type { JsonSchema } from '../kind/json-schema.ts';
import type { GroupVersionKind } from '../meta/types.ts';

/** A JSON Schema of OpenAPI 3.0, or a reference to one. */
export type OpenApiSchema = JsonSchema;

export interface OpenApiParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: true;
  readonly description: string;
  readonly schema: OpenApiSchema;
}

/** Schemas by media type. */
export type OpenApiContent = Readonly<Record<string, { readonly schema: OpenApiSchema }>>;

export interface OpenApiResponse {
  readonly description: string;
  readonly content?: OpenApiContent;
}

/** The action of an operation, as named by the published documents. */
export type OpenApiAction =
  | 'list'
  | 'watch'
  | 'watchlist'
  | 'get'
  | 'post'
  | 'put'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'connect';

export interface OpenApiOperation {
  readonly tags: readonly string[];
  readonly description: string;
  readonly operationId: string;
  readonly deprecated?: true;
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: { readonly content: OpenApiContent; readonly required?: true };
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
  readonly 'x-kubernetes-action'?: OpenApiAction;
  /** The kind of the operation. In an operation this is a single object, in a schema it is an array. */
  readonly 'x-kubernetes-group-version-kind'?: GroupVersionKind;
}

export type OpenApiMethod = 'get' | 'put' | 'post' | 'delete' | 'patch';

export type OpenApiPathItem = Readonly<Partial<Record<OpenApiMethod, OpenApiOperation>>> & {
  readonly parameters?: readonly OpenApiParameter[];
};

/** Title and version of the API. */
export interface OpenApiInfo {
  readonly title: string;
  /** Version of the server. */
  readonly version: string;
}

/** An OpenAPI 3.0 document. */
export interface OpenApiDocument {
  readonly openapi: '3.0.0';
  readonly info: OpenApiInfo;
  readonly paths: Readonly<Record<string, OpenApiPathItem>>;
  readonly components: { readonly schemas: Readonly<Record<string, OpenApiSchema>> };
}

/** Body of `/openapi/v3`. */
export interface OpenApiV3Index {
  readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>>;
}
