import {
  type ApplyConfiguration,
  type ApplyOptions,
  type ClientWatchEvent,
  type DeleteOptions,
  type GetOptions,
  type GroupVersionResource,
  type KindDefinition,
  type KubeList,
  type KubeObject,
  type ListOptions,
  type MutateOptions,
  type PatchType,
  type RequestContext,
  type ResourceClient,
  type Status,
  StatusError,
  StatusReason,
  type Stored,
  type SubresourceDefinition,
  type WatchOptions,
} from '@keelson/core';
import {
  answerValue,
  type ListAnswer,
  type PatchBody,
  type ResourceRegistry,
  type ResourceService,
  type StoredObject,
  type Target,
} from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import {
  deleteParameters,
  jsonBody,
  listParameters,
  watchParameters,
  writeParameters,
} from './in-process-parameters.ts';
import { InProcessWatch } from './in-process-watch.ts';

/** Dependencies that all in-process clients share. */
export interface InProcessCalls {
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly contextOf: (signal: AbortSignal | undefined) => RequestContext;
  /** Projection of stored objects for reads and watches: the whole object or its metadata. */
  readonly read: (kind: KindDefinition, stored: StoredObject) => KubeObject;
}

function notServed(resource: GroupVersionResource): StatusError {
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'the server could not find the requested resource',
    reason: StatusReason.NotFound,
    details: { ...(resource.group === '' ? {} : { group: resource.group }), kind: resource.resource },
    code: 404,
  });
}

/**
 * In-process operations on one resource. The service of the resource is determined for every call, because kinds can be
 * added and removed.
 */
export class InProcessResourceClient<T extends KubeObject> implements ResourceClient<T> {
  readonly resourceName: GroupVersionResource;
  readonly #calls: InProcessCalls;
  readonly #namespace: string | undefined;

  constructor(calls: InProcessCalls, resource: GroupVersionResource, namespace: string | undefined) {
    this.#calls = calls;
    this.resourceName = resource;
    this.#namespace = namespace;
  }

  namespace(namespace: string): ResourceClient<T> {
    return new InProcessResourceClient<T>(this.#calls, this.resourceName, namespace);
  }

  async create(object: T, options: MutateOptions = {}): Promise<Stored<T>> {
    const context = this.#calls.contextOf(options.signal);
    const answer = await this.#service().create(
      context,
      this.#homeOf(object),
      jsonBody(object),
      writeParameters(options),
    );
    return answerValue(answer) as Stored<T>;
  }

  async get(name: string, options: GetOptions = {}): Promise<Stored<T>> {
    const parameters = { export: false, exact: false, resourceVersion: options.resourceVersion ?? '' };
    const answer = await this.#service().get(this.#calls.contextOf(options.signal), this.#target(name), parameters);
    return ('stored' in answer ? this.#calls.read(answer.kind, answer.stored) : answer.object) as Stored<T>;
  }

  async list(options: ListOptions = {}): Promise<KubeList<Stored<T>>> {
    const service = this.#service();
    const answer = await service.list(this.#calls.contextOf(options.signal), this.#target(), listParameters(options));
    return this.#listOf(answer);
  }

  #listOf(answer: ListAnswer): KubeList<Stored<T>> {
    const { kind, list } = answer;
    const items: Stored<T>[] = [];
    for (const stored of list.objects()) items.push(this.#calls.read(kind, stored) as Stored<T>);
    return {
      kind: kind.listKind,
      apiVersion: kind.apiVersion,
      metadata: {
        resourceVersion: String(list.revision),
        ...(answer.continue === '' ? {} : { continue: answer.continue }),
        ...(list.remaining === undefined ? {} : { remainingItemCount: list.remaining }),
      },
      items,
    };
  }

  async update(object: T, options: MutateOptions = {}): Promise<Stored<T>> {
    const target = { ...this.#homeOf(object), name: object.metadata?.name ?? '' };
    const context = this.#calls.contextOf(options.signal);
    return answerValue(
      await this.#service().update(context, target, jsonBody(object), writeParameters(options)),
    ) as Stored<T>;
  }

  async patch(name: string, type: PatchType, patch: unknown, options: MutateOptions = {}): Promise<Stored<T>> {
    const body: PatchBody = { type, bytes: jsonBody(patch).bytes };
    const context = this.#calls.contextOf(options.signal);
    return answerValue(
      await this.#service().patch(context, this.#target(name), body, writeParameters(options)),
    ) as Stored<T>;
  }

  async apply(configuration: ApplyConfiguration<T>, options: ApplyOptions): Promise<Stored<T>> {
    const { kind, apiVersion } = this.#service().kind;
    const object: KubeObject = { kind, apiVersion, ...(configuration as KubeObject) };
    const target = { ...this.#homeOf(object), name: object.metadata?.name ?? '' };
    const body: PatchBody = { type: 'apply', bytes: jsonBody(object).bytes };
    const context = this.#calls.contextOf(options.signal);
    return answerValue(await this.#service().patch(context, target, body, writeParameters(options))) as Stored<T>;
  }

  async delete(name: string, options: DeleteOptions = {}): Promise<Stored<T> | Status> {
    const context = this.#calls.contextOf(options.signal);
    return answerValue(await this.#service().delete(context, this.#target(name), deleteParameters(options))) as
      | Stored<T>
      | Status;
  }

  async deleteCollection(options: DeleteOptions & ListOptions = {}): Promise<KubeList<Stored<T>>> {
    const answer = await this.#service().deleteCollection(
      this.#calls.contextOf(options.signal),
      this.#target(),
      deleteParameters(options),
      listParameters(options),
    );
    return this.#listOf(answer);
  }

  watch(options: WatchOptions = {}): AsyncIterable<ClientWatchEvent<T>> {
    const { timeoutSeconds, signal } = options;
    const parameters = watchParameters(options);
    return {
      [Symbol.asyncIterator]: () =>
        new InProcessWatch<T>({
          clock: this.#calls.clock,
          resource: this.resourceName,
          read: this.#calls.read,
          service: () => this.#service(),
          open: (service, stop) => service.watch(this.#calls.contextOf(stop), this.#target(), parameters),
          ...(signal === undefined ? {} : { signal }),
          ...(timeoutSeconds === undefined ? {} : { timeoutMs: timeoutSeconds * 1000 }),
        }),
    };
  }

  async getSubresource(name: string, subresource: string): Promise<KubeObject> {
    const { service, definition } = this.#subresource(subresource);
    return answerValue(
      await service.getSubresource(this.#calls.contextOf(undefined), this.#target(name), definition),
    ) as KubeObject;
  }

  async updateSubresource(
    name: string,
    subresource: string,
    body: KubeObject,
    options: MutateOptions = {},
  ): Promise<KubeObject> {
    const { service, definition } = this.#subresource(subresource);
    const answer = await service.updateSubresource(
      this.#calls.contextOf(options.signal),
      this.#target(name),
      definition,
      jsonBody(body),
      writeParameters(options),
    );
    return answerValue(answer) as KubeObject;
  }

  async patchSubresource(
    name: string,
    subresource: string,
    type: PatchType,
    patch: unknown,
    options: MutateOptions = {},
  ): Promise<KubeObject> {
    const { service, definition } = this.#subresource(subresource);
    const answer = await service.patchSubresource(
      this.#calls.contextOf(options.signal),
      this.#target(name),
      definition,
      { type, bytes: jsonBody(patch).bytes },
      writeParameters(options),
    );
    return answerValue(answer) as KubeObject;
  }

  async createSubresource(
    name: string,
    subresource: string,
    body: KubeObject,
    options: MutateOptions = {},
  ): Promise<KubeObject | Status> {
    const { service, definition } = this.#subresource(subresource);
    const answer = await service.createSubresource(
      this.#calls.contextOf(options.signal),
      this.#target(name),
      definition,
      jsonBody(body),
      writeParameters(options),
    );
    return answerValue(answer);
  }

  #service(): ResourceService {
    const service = this.#calls.registry.find(this.resourceName);
    if (service === undefined) throw notServed(this.resourceName);
    return service;
  }

  #subresource(name: string): { readonly service: ResourceService; readonly definition: SubresourceDefinition } {
    const service = this.#service();
    const definition = service.kind.subresources.find((subresource) => subresource.name === name);
    if (definition === undefined) {
      throw notServed({ ...this.resourceName, resource: `${this.resourceName.resource}/${name}` });
    }
    return { service, definition };
  }

  #target(name?: string): Target {
    return {
      ...(this.#namespace === undefined ? {} : { namespace: this.#namespace }),
      ...(name === undefined ? {} : { name }),
    };
  }

  /** The namespace of a new object when the client is not restricted to one: that of the object. */
  #homeOf(object: { readonly metadata?: { readonly namespace?: string } | undefined }): Target {
    const namespace = this.#namespace ?? object.metadata?.namespace;
    return namespace === undefined ? {} : { namespace };
  }
}
