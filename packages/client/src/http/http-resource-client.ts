import {
  apiVersionOf,
  type ClientWatchEvent,
  type DeleteOptions,
  type GetOptions,
  type GroupVersionResource,
  type KubeList,
  type KubeObject,
  type ListOptions,
  type MutateOptions,
  PatchType,
  type ResourceClient,
  type Status,
  type WatchOptions,
} from '@keelson/core';
import { ConnectionError } from './connection-error.ts';
import type { HttpCall, HttpTransport } from './http-transport.ts';
import { HttpWatch } from './http-watch.ts';
import { completeList, metadataAccept, metadataOf } from './object-forms.ts';
import { deleteBody, getQuery, listQuery, mutateQuery, watchQuery } from './query-text.ts';
import { resourcePath } from './resource-path.ts';

/** What one resource client speaks of. */
export interface HttpResource {
  readonly resource: GroupVersionResource;
  /** Kind of the objects, where it is known. */
  readonly kind?: string;
  readonly namespace?: string;
  readonly metadataOnly?: boolean;
}

const json = 'application/json';

type Parts = Pick<HttpCall, 'method' | 'signal'> & {
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
  readonly query?: string;
  readonly accept?: string;
  readonly send?: unknown;
  readonly contentType?: string;
};

/** Operations on one resource of a server. */
export class HttpResourceClient<T extends KubeObject> implements ResourceClient<T> {
  readonly resourceName: GroupVersionResource;
  readonly #transport: HttpTransport;
  readonly #scope: HttpResource;

  constructor(transport: HttpTransport, scope: HttpResource) {
    this.#transport = transport;
    this.#scope = scope;
    const { group, version, resource } = scope.resource;
    this.resourceName = { group, version, resource };
  }

  namespace(namespace: string): ResourceClient<T> {
    return new HttpResourceClient<T>(this.#transport, { ...this.#scope, namespace });
  }

  async create(object: T, options: MutateOptions = {}): Promise<T> {
    const { signal } = options;
    const namespace = this.#scope.namespace ?? object.metadata?.namespace;
    return this.#json<T>({ method: 'POST', namespace, query: mutateQuery(options), send: this.#typed(object), signal });
  }

  async get(name: string, options: GetOptions = {}): Promise<T> {
    const { signal } = options;
    const object = await this.#json<T>({ method: 'GET', name, query: getQuery(options), accept: this.#accept('one'), signal });
    return this.#reduced(object);
  }

  async list(options: ListOptions = {}): Promise<KubeList<T>> {
    const { signal } = options;
    const accept = this.#accept('list');
    const list = completeList(await this.#json<KubeList<T>>({ method: 'GET', query: listQuery(options), accept, signal }));
    return this.#scope.metadataOnly ? { ...list, items: list.items.map((object) => this.#reduced(object)) } : list;
  }

  async update(object: T, options: MutateOptions = {}): Promise<T> {
    const { name = '', namespace } = object.metadata ?? {};
    const target = { name, namespace: this.#scope.namespace ?? namespace };
    const { signal } = options;
    return this.#json<T>({ method: 'PUT', ...target, query: mutateQuery(options), send: this.#typed(object), signal });
  }

  async patch(name: string, type: PatchType, patch: unknown, options: MutateOptions = {}): Promise<T> {
    return this.#patch<T>({ name }, type, patch, options);
  }

  async delete(name: string, options: DeleteOptions = {}): Promise<T | Status> {
    return this.#json<T | Status>({ method: 'DELETE', name, send: deleteBody(options), signal: options.signal });
  }

  async deleteCollection(options: DeleteOptions & ListOptions = {}): Promise<Status | KubeList<T>> {
    const { signal } = options;
    return this.#json({ method: 'DELETE', query: listQuery(options), send: deleteBody(options), signal });
  }

  watch(options: WatchOptions = {}): AsyncIterable<ClientWatchEvent<T>> {
    const { signal, timeoutSeconds } = options;
    const open = async (stop: AbortSignal) =>
      this.#transport.stream(
        this.#call({ method: 'GET', query: watchQuery(options), accept: this.#accept('one'), signal: stop }),
      );
    const timeoutMs = timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000;
    const reduce = this.#scope.metadataOnly ? metadataOf : undefined;
    return {
      [Symbol.asyncIterator]: () => new HttpWatch<T>({ clock: this.#transport.clock, open, signal, timeoutMs, reduce }),
    };
  }

  async getSubresource(name: string, subresource: string): Promise<KubeObject> {
    return this.#json({ method: 'GET', name, subresource });
  }

  async updateSubresource(name: string, subresource: string, body: KubeObject, options: MutateOptions = {}): Promise<KubeObject> {
    const { signal } = options;
    return this.#json({ method: 'PUT', name, subresource, query: mutateQuery(options), send: body, signal });
  }

  async patchSubresource(
    name: string,
    subresource: string,
    type: PatchType,
    patch: unknown,
    options: MutateOptions = {},
  ): Promise<KubeObject> {
    return this.#patch({ name, subresource }, type, patch, options);
  }

  async createSubresource(
    name: string,
    subresource: string,
    body: KubeObject,
    options: MutateOptions = {},
  ): Promise<KubeObject | Status> {
    const { signal } = options;
    return this.#json({ method: 'POST', name, subresource, query: mutateQuery(options), send: body, signal });
  }

  #patch<R>(target: Pick<Parts, 'name' | 'subresource'>, type: PatchType, patch: unknown, options: MutateOptions): Promise<R> {
    const { signal } = options;
    const query = mutateQuery(options);
    return this.#json<R>({ method: 'PATCH', ...target, query, send: patch, contentType: PatchType[type], signal });
  }

  #call({ namespace = this.#scope.namespace, name, subresource, query = '', send, ...parts }: Parts): HttpCall {
    const { method, signal, accept = json, contentType = json } = parts;
    const { resource } = this.#scope;
    const target = {
      resource,
      namespace,
      ...(name === undefined ? {} : { name }),
      ...(subresource === undefined ? {} : { subresource }),
    };
    return {
      method,
      path: resourcePath(target) + query,
      accept,
      signal,
      resource: this.resourceName,
      ...(name === undefined ? {} : { name }),
      ...(send === undefined ? {} : { body: { bytes: Buffer.from(JSON.stringify(send)), contentType } }),
    };
  }

  async #json<R>(parts: Parts): Promise<R> {
    const call = this.#call(parts);
    const { body } = await this.#transport.send(call);
    try {
      return JSON.parse(body.toString('utf8')) as R;
    } catch (cause) {
      throw new ConnectionError('BadAnswer', `${call.method} ${call.path.split('?')[0]}: the answer is not JSON`, cause);
    }
  }

  #accept(shape: 'one' | 'list'): string {
    return this.#scope.metadataOnly ? metadataAccept(shape) : json;
  }

  #reduced(object: T): T {
    return this.#scope.metadataOnly ? (metadataOf(object) as T) : object;
  }

  /** Servers other than this project's want to be told the kind. */
  #typed(object: T): T {
    const { kind, resource } = this.#scope;
    return kind === undefined ? object : { apiVersion: apiVersionOf(resource), kind, ...object };
  }
}
