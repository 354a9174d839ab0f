import type { GroupVersionKind } from '../meta/types.ts';
import type { OpenApiAction, OpenApiInfo, OpenApiMethod, OpenApiSchema } from './open-api-types.ts';

/**
 * A schema of Swagger 2.0: references point into `definitions`, other keywords are allowed beside them, alternatives do
 * not exist.
 */
export type SwaggerSchema = OpenApiSchema;

/** A parameter in the path or the query. */
export interface SwaggerPlainParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly type: 'string' | 'integer' | 'boolean';
  readonly uniqueItems: true;
  readonly required?: true;
  readonly description: string;
}

export interface SwaggerBodyParameter {
  readonly name: 'body';
  readonly in: 'body';
  readonly required?: true;
  readonly schema: SwaggerSchema;
}

export type SwaggerParameter = SwaggerPlainParameter | SwaggerBodyParameter;

export interface SwaggerResponse {
  readonly description: string;
  readonly schema?: SwaggerSchema;
}

export interface SwaggerOperation {
  readonly tags: readonly string[];
  readonly description: string;
  readonly operationId: string;
  readonly consumes: readonly string[];
  readonly produces: readonly string[];
  readonly schemes: readonly string[];
  readonly deprecated?: true;
  readonly parameters?: readonly SwaggerParameter[];
  readonly responses: Readonly<Record<string, SwaggerResponse>>;
  readonly 'x-kubernetes-action'?: OpenApiAction;
  readonly 'x-kubernetes-group-version-kind'?: GroupVersionKind;
}

export type SwaggerPathItem = Readonly<Partial<Record<OpenApiMethod, SwaggerOperation>>> & {
  readonly parameters?: readonly SwaggerParameter[];
};

/** A Swagger 2.0 document, which older clients read instead of OpenAPI v3. */
export interface SwaggerDocument {
  readonly swagger: '2.0';
  readonly info: OpenApiInfo;
  readonly paths: Readonly<Record<string, SwaggerPathItem>>;
  readonly definitions: Readonly<Record<string, SwaggerSchema>>;
}
