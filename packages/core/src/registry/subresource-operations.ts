import { type StatusError, statusErrors } from '../errors/status-error.ts';
import type { ConnectLocation, ConnectSubresource } from '../kind/connect.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { ActionOperation } from './action-operation.ts';
import { ConnectOperation } from './connect-operation.ts';
import type { GetOperation } from './get-operation.ts';
import { objectTarget } from './object-target.ts';
import type { ParentOperations } from './parent-access.ts';
import type { PatchOperation } from './patch-operation.ts';
import { ProjectionOperations } from './projection-operations.ts';
import { type Replace, ReplaceOperation } from './replace-operation.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, ConnectParameters, PatchBody, Target, WriteParameters } from './resource-service.ts';
import type { UpdateOperation } from './update-operation.ts';

function isPatchable(subresource: SubresourceDefinition): subresource is Replace {
  return subresource.type === 'replace' && subresource.patchable === true;
}

/** Sends each operation on a subresource to what its type can do; 405 for what it cannot. */
export class SubresourceOperations {
  readonly #binding: ResourceBinding;
  readonly #get: GetOperation;
  readonly #update: UpdateOperation;
  readonly #patch: PatchOperation;
  readonly #projection: ProjectionOperations;
  readonly #replace: ReplaceOperation;
  readonly #action: ActionOperation;
  readonly #connect: ConnectOperation;

  constructor(binding: ResourceBinding, parent: ParentOperations, update: UpdateOperation, patch: PatchOperation) {
    this.#binding = binding;
    this.#get = parent.get;
    this.#update = update;
    this.#patch = patch;
    this.#projection = new ProjectionOperations(binding, parent);
    this.#replace = new ReplaceOperation(binding, parent.writer);
    this.#action = new ActionOperation(binding, parent);
    this.#connect = new ConnectOperation(binding, parent.get);
  }

  async get(context: RequestContext, target: Target, subresource: SubresourceDefinition): Promise<Answer> {
    const place = objectTarget(this.#binding, target);
    if (subresource.type === 'projection') return this.#projection.get(context, place, subresource);
    if (subresource.type !== 'status' && !isPatchable(subresource)) throw this.#unsupported(subresource, 'get');
    return { stored: await this.#get.stored(context, place), kind: this.#binding.kind, code: 200 };
  }

  async update(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    switch (subresource.type) {
      case 'status':
        return this.#update.run(context, target, body, parameters, 'status');
      case 'replace':
        return this.#replace.update(context, objectTarget(this.#binding, target), subresource, body, parameters);
      case 'projection':
        return this.#projection.update(context, objectTarget(this.#binding, target), subresource, body, parameters);
      case 'action':
      case 'connect':
        throw this.#unsupported(subresource, 'update');
    }
  }

  async patch(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: PatchBody,
    parameters: WriteParameters,
  ): Promise<Answer> {
    if (subresource.type === 'status') return this.#patch.run(context, target, body, parameters, 'status');
    const place = objectTarget(this.#binding, target);
    if (isPatchable(subresource)) return this.#replace.patch(context, place, subresource, body, parameters);
    if (subresource.type !== 'projection') throw this.#unsupported(subresource, 'patch');
    return this.#projection.patch(context, place, subresource, body, parameters);
  }

  async create(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    if (subresource.type !== 'action') throw this.#unsupported(subresource, 'create');
    return this.#action.run(context, objectTarget(this.#binding, target), subresource, body, parameters);
  }

  connect(
    context: RequestContext,
    target: Target,
    subresource: ConnectSubresource,
    parameters: ConnectParameters,
  ): Promise<ConnectLocation> {
    return this.#connect.run(context, target, subresource, parameters);
  }

  #unsupported(subresource: SubresourceDefinition, verb: string): StatusError {
    const { group, resource } = this.#binding.resource;
    return statusErrors.methodNotAllowed({ group, resource: `${resource}/${subresource.name}` }, verb);
  }
}
