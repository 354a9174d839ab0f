import type { ConnectLocation, ConnectSubresource } from '../kind/connect.ts';
import type { KindDefinition, Verb } from '../kind/kind-definition.ts';
import type { SubresourceDefinition } from '../kind/subresource.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { ResourceWatch } from '../storage/resource-storage.ts';
import { CreateOperation } from './create-operation.ts';
import { DeleteCollectionOperation } from './delete-collection.ts';
import { DeleteOperation } from './delete-operation.ts';
import { GetOperation } from './get-operation.ts';
import { ListOperation } from './list-operation.ts';
import { ObjectWriter } from './object-writer.ts';
import { PatchOperation } from './patch-operation.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type {
  Answer,
  Body,
  ConnectParameters,
  DeleteParameters,
  ExportParameters,
  ListAnswer,
  PatchBody,
  ResourceService,
  SelectParameters,
  Target,
  WriteParameters,
} from './resource-service.ts';
import { SubresourceOperations } from './subresource-operations.ts';
import { translating } from './translate-error.ts';
import { UpdateOperation } from './update-operation.ts';
import { WatchOperation } from './watch-operation.ts';

/** The operations on one kind, joined; every failure leaves as a StatusError. */
export class KindResourceService implements ResourceService {
  readonly kind: KindDefinition;
  readonly #binding: ResourceBinding;
  readonly #create: CreateOperation;
  readonly #get: GetOperation;
  readonly #list: ListOperation;
  readonly #watch: WatchOperation;
  readonly #update: UpdateOperation;
  readonly #patch: PatchOperation;
  readonly #delete: DeleteOperation;
  readonly #deleteCollection: DeleteCollectionOperation;
  readonly #subresources: SubresourceOperations;

  constructor(binding: ResourceBinding) {
    this.kind = binding.kind;
    this.#binding = binding;
    const writer = new ObjectWriter(binding);
    this.#create = new CreateOperation(binding);
    this.#get = new GetOperation(binding);
    this.#list = new ListOperation(binding);
    this.#watch = new WatchOperation(binding);
    this.#update = new UpdateOperation(binding, writer);
    this.#patch = new PatchOperation(binding, writer);
    this.#delete = new DeleteOperation(binding);
    this.#deleteCollection = new DeleteCollectionOperation(binding, this.#list, this.#delete);
    const parent = { get: this.#get, writer, remove: this.#delete };
    this.#subresources = new SubresourceOperations(binding, parent, this.#update, this.#patch);
  }

  create(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    return this.#translated('create', context, target, () => this.#create.run(context, target, body, parameters));
  }

  get(
    context: RequestContext,
    target: Target,
    parameters: ExportParameters & { readonly resourceVersion: string },
  ): Promise<Answer> {
    return this.#translated(
      'get',
      context,
      target,
      () => this.#get.run(context, target, parameters),
      parameters.resourceVersion,
    );
  }

  list(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ListAnswer> {
    return this.#translated(
      'list',
      context,
      target,
      () => this.#list.run(context, target, parameters),
      parameters.resourceVersion,
    );
  }

  watch(context: RequestContext, target: Target, parameters: SelectParameters): Promise<ResourceWatch> {
    return this.#translated(
      'watch',
      context,
      target,
      () => this.#watch.run(context, target, parameters),
      parameters.resourceVersion,
    );
  }

  update(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    return this.#translated('update', context, target, () => this.#update.run(context, target, body, parameters));
  }

  patch(context: RequestContext, target: Target, patch: PatchBody, parameters: WriteParameters): Promise<Answer> {
    return this.#translated('patch', context, target, () => this.#patch.run(context, target, patch, parameters));
  }

  delete(context: RequestContext, target: Target, parameters: DeleteParameters): Promise<Answer> {
    return this.#translated('delete', context, target, () => this.#delete.run(context, target, parameters));
  }

  deleteCollection(
    context: RequestContext,
    target: Target,
    parameters: DeleteParameters,
    select: SelectParameters,
  ): Promise<ListAnswer> {
    return this.#translated(
      'deletecollection',
      context,
      target,
      () => this.#deleteCollection.run(context, target, parameters, select),
      select.resourceVersion,
    );
  }

  getSubresource(context: RequestContext, target: Target, subresource: SubresourceDefinition): Promise<Answer> {
    return this.#translated('get', context, target, () => this.#subresources.get(context, target, subresource));
  }

  updateSubresource(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    return this.#translated('update', context, target, () =>
      this.#subresources.update(context, target, subresource, body, parameters),
    );
  }

  patchSubresource(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    patch: PatchBody,
    parameters: WriteParameters,
  ): Promise<Answer> {
    return this.#translated('patch', context, target, () =>
      this.#subresources.patch(context, target, subresource, patch, parameters),
    );
  }

  createSubresource(
    context: RequestContext,
    target: Target,
    subresource: SubresourceDefinition,
    body: Body,
    parameters: WriteParameters,
  ): Promise<Answer> {
    return this.#translated('create', context, target, () =>
      this.#subresources.create(context, target, subresource, body, parameters),
    );
  }

  connect(
    context: RequestContext,
    target: Target,
    subresource: ConnectSubresource,
    parameters: ConnectParameters,
  ): Promise<ConnectLocation> {
    return this.#translated('get', context, target, () =>
      this.#subresources.connect(context, target, subresource, parameters),
    );
  }

  #translated<T>(
    verb: Verb,
    context: RequestContext,
    target: Target,
    run: () => Promise<T>,
    resourceVersion = '',
  ): Promise<T> {
    return translating(
      {
        verb,
        resource: this.#binding.resource,
        name: target.name ?? '',
        ...(resourceVersion === '' ? {} : { revision: Number(resourceVersion) }),
        ...(context.signal ? { signal: context.signal } : {}),
      },
      run,
    );
  }
}
