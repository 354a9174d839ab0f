import { type Brand, defaultBrand } from '../codec/media-type.ts';
import { subresourceKind } from '../discovery/subresource-entry.ts';
import type { ConnectSubresource, ConnectVerb } from '../kind/connect.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { GroupVersionKind } from '../meta/types.ts';
import { type AnswerTypes, answerTypesOf } from './answer-types.ts';
import type { Components } from './components.ts';
import { metaComponents, refTo } from './meta-schemas.ts';
import type {
  OpenApiAction,
  OpenApiContent,
  OpenApiMethod,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  OpenApiSchema,
} from './open-api-types.ts';
import { type OperationSubject, operationId, tagOf } from './operation-id.ts';
import {
  deleteCollectionParameters,
  deleteParameters,
  listParameters,
  patchParameters,
  readParameters,
  writeParameters,
} from './parameters.ts';

function content(types: readonly string[], schema: OpenApiSchema): OpenApiContent {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

const phrases: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' };

function responses(
  codes: readonly number[],
  schema: OpenApiSchema,
  types: readonly string[],
): Record<string, OpenApiResponse> {
  const good = codes.map((code) => [code, { description: phrases[code] ?? '', content: content(types, schema) }]);
  return { ...Object.fromEntries(good), '401': { description: 'Unauthorized' } };
}

/** The HTTP methods of the verbs of a connect subresource. */
export const connectMethods: Readonly<Record<ConnectVerb, OpenApiMethod>> = {
  create: 'post',
  delete: 'delete',
  get: 'get',
  patch: 'patch',
  update: 'put',
};

/** Builds the operations of one kind; `resourcePaths` assigns them to paths. */
export class OperationBuilder {
  readonly #kind: KindDefinition;
  readonly #components: Components;
  readonly #types: AnswerTypes;

  constructor(kind: KindDefinition, components: Components, brand: Brand = defaultBrand) {
    this.#kind = kind;
    this.#components = components;
    this.#types = answerTypesOf(kind, brand);
  }

  list(everywhere: boolean): OpenApiOperation {
    const { listKind, group, version } = this.#kind;
    return {
      ...this.#frame('list', `Lists or watches objects of the kind ${this.#kind.kind}.`, 'list', { everywhere }),
      parameters: listParameters,
      responses: responses([200], this.#components.refOf({ group, version, kind: listKind }), this.#types.stream),
    };
  }

  /** The `/watch/` paths, an older spelling of the watch parameter. */
  watch(what: 'object' | 'list' | 'everywhere'): OpenApiOperation {
    const list = what !== 'object';
    return {
      ...this.#frame(
        'watch',
        `Watches ${list ? 'objects' : 'one object'} of the kind ${this.#kind.kind}. Prefer the watch parameter of the list operation.`,
        list ? 'watchlist' : 'watch',
        { list, everywhere: what === 'everywhere' },
      ),
      deprecated: true,
      parameters: listParameters,
      responses: responses([200], refTo(metaComponents.watchEvent), this.#types.stream),
    };
  }

  create(): OpenApiOperation {
    const schema = this.#components.refOf(this.#kind);
    return {
      ...this.#frame('create', `Creates an object of the kind ${this.#kind.kind}.`, 'post'),
      ...this.#write(schema, writeParameters, [200, 201, 202]),
    };
  }

  deleteCollection(): OpenApiOperation {
    return {
      ...this.#frame(
        'deleteCollection',
        `Deletes all selected objects of the kind ${this.#kind.kind}.`,
        'deletecollection',
      ),
      parameters: deleteCollectionParameters,
      requestBody: { content: content(['*/*'], refTo(metaComponents.deleteOptions)) },
      responses: responses([200], refTo(metaComponents.status), this.#types.object),
    };
  }

  read(subresource?: SubresourceDefinition): OpenApiOperation {
    return {
      ...this.#frame('read', this.#sentence('Reads', subresource), 'get', {}, subresource),
      ...(subresource ? {} : { parameters: readParameters }),
      responses: responses([200], this.#bodySchema(subresource), this.#types.object),
    };
  }

  replace(subresource?: SubresourceDefinition): OpenApiOperation {
    return {
      ...this.#frame('replace', this.#sentence('Replaces', subresource), 'put', {}, subresource),
      ...this.#write(this.#bodySchema(subresource), writeParameters, [200, 201]),
    };
  }

  patch(subresource?: SubresourceDefinition): OpenApiOperation {
    const types = ['application/json-patch+json', 'application/merge-patch+json'];
    // Without this media type, `kubectl apply` computes JSON merge patches instead.
    if (this.#kind.structural) types.push('application/strategic-merge-patch+json');
    types.push('application/apply-patch+yaml');
    return {
      ...this.#frame('patch', this.#sentence('Changes parts of', subresource), 'patch', {}, subresource),
      parameters: patchParameters,
      requestBody: { content: content(types, refTo(metaComponents.patch)), required: true },
      responses: responses([200, 201], this.#bodySchema(subresource), this.#types.object),
    };
  }

  delete(): OpenApiOperation {
    const answer = this.#kind.strategy.deleteReturnsObject
      ? this.#components.refOf(this.#kind)
      : refTo(metaComponents.status);
    return {
      ...this.#frame('delete', this.#sentence('Deletes'), 'delete'),
      parameters: deleteParameters,
      requestBody: { content: content(['*/*'], refTo(metaComponents.deleteOptions)) },
      responses: responses([200, 202], answer, this.#types.object),
    };
  }

  /** POST of an action such as `binding`. */
  act(subresource: SubresourceDefinition): OpenApiOperation {
    return {
      ...this.#frame('create', this.#sentence('Calls', subresource), 'post', {}, subresource),
      ...this.#write(this.#bodySchema(subresource), writeParameters, [200, 201, 202]),
    };
  }

  /** A call that is forwarded; the server does not determine its answer. */
  connect(subresource: ConnectSubresource, verb: ConnectVerb, withPath: boolean): OpenApiOperation {
    const method = connectMethods[verb];
    // A subresource that can only be read, such as log, is a read of text in the published documents.
    const readOnly = subresource.verbs.length === 1 && verb === 'get';
    const frame = readOnly
      ? this.#frame('read', this.#sentence('Reads', subresource), 'get', {}, subresource)
      : this.#frame(
          'connect',
          this.#sentence(`Passes ${method.toUpperCase()} requests on to`, subresource),
          'connect',
          { method: method.slice(0, 1).toUpperCase() + method.slice(1), withPath },
          subresource,
        );
    return { ...frame, responses: responses([200], { type: 'string' }, readOnly ? ['text/plain'] : ['*/*']) };
  }

  #bodySchema(subresource?: SubresourceDefinition): OpenApiSchema {
    return this.#components.refOf(subresource ? subresourceKind(this.#kind, subresource) : this.#kind);
  }

  #sentence(verb: string, subresource?: SubresourceDefinition): string {
    return `${verb} ${subresource ? `${subresource.name} of ` : ''}an object of the kind ${this.#kind.kind}.`;
  }

  #write(
    schema: OpenApiSchema,
    parameters: readonly OpenApiParameter[],
    codes: readonly number[],
  ): Pick<OpenApiOperation, 'parameters' | 'requestBody' | 'responses'> {
    return {
      parameters,
      requestBody: { content: content(['*/*'], schema), required: true },
      responses: responses(codes, schema, this.#types.object),
    };
  }

  #frame(
    verb: Parameters<typeof operationId>[0],
    description: string,
    action: OpenApiAction,
    options: Pick<OperationSubject, 'list' | 'everywhere' | 'method' | 'withPath'> = {},
    subresource?: SubresourceDefinition,
  ): Omit<OpenApiOperation, 'responses'> {
    const { group, version, kind, scope } = this.#kind;
    const gvk: GroupVersionKind = subresource ? subresourceKind(this.#kind, subresource) : { group, version, kind };
    return {
      tags: [tagOf(this.#kind)],
      description,
      operationId: operationId(verb, {
        group,
        version,
        kind,
        namespaced: scope === 'Namespaced',
        ...options,
        ...(subresource ? { subresource: subresource.name } : {}),
      }),
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': { group: gvk.group, version: gvk.version, kind: gvk.kind },
    };
  }
}
