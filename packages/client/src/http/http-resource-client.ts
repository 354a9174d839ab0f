import {
  type ApiClient,
  type ApplyConfiguration,
  type ApplyOptions,
  apiVersionOf,
  type ClientWatchEvent,
  type DeleteOptions,
  type GetOptions,
  type GroupVersionResource,
  type KindDefinition,
  type KubeList,
  type KubeObject,
  type ListOptions,
  type MutateOptions,
  PatchType,
  type ResourceClient,
  type Status,
  type Stored,
  type WatchOptions,
} from '@keelson/core';
import { type Brand, defaultBrand } from '@keelson/core/internal';
import { discover } from './discover.ts';
import type { HttpClientOptions } from './http-client-options.ts';
import { type HttpCall, HttpTransport } from './http-transport.ts';
import { HttpWatch } from './http-watch.ts';
import { completeList, metadataAccept, metadataOf } from './object-forms.ts';
import { deleteBody, getQuery, listQuery, mutateQuery, resourcePath, watchQuery } from './resource-path.ts';
import { jsonBody, jsonFormat, protobufFormat, type WireBody, type WireFormat } from './wire-format.ts';

/** The resource of a client and its dependencies. */
export interface HttpResource {
  readonly resource: GroupVersionResource;
  /** Kind of the objects, if the caller specified it. */
  readonly kind?: string;
  readonly namespace?: string;
  readonly metadataOnly?: boolean;
  /** Format of the resource's own objects; all other objects are JSON. */
  readonly format: WireFormat;
  readonly brand: Brand;
}

type Parts = Pick<HttpCall, 'method' | 'signal'> & {
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
  readonly query?: string;
  readonly accept?: string;
  readonly body?: WireBody | undefined;
  /** Format of the response; default: that of the resource's objects. */
  readonly format?: WireFormat;
};

function optionalBody(value: object | undefined): WireBody | undefined {
  return value === undefined ? undefined : jsonBody(value);
}

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

  async create(object: T, options: MutateOptions = {}): Promise<Stored<T>> {
    const { signal } = options;
    const namespace = this.#scope.namespace ?? object.metadata?.namespace;
    return this.#send<Stored<T>>({
      method: 'POST',
      namespace,
      query: mutateQuery(options),
      body: this.#encoded(object),
      signal,
    });
  }

  async get(name: string, options: GetOptions = {}): Promise<Stored<T>> {
    const { signal } = options;
    const object = await this.#send<Stored<T>>({
      method: 'GET',
      name,
      query: getQuery(options),
      accept: this.#accept('one'),
      signal,
    });
    return this.#reduced(object);
  }

  async list(options: ListOptions = {}): Promise<KubeList<Stored<T>>> {
    const { signal } = options;
    const accept = this.#accept('list');
    const list = completeList(
      await this.#send<KubeList<Stored<T>>>({ method: 'GET', query: listQuery(options), accept, signal }),
    );
    return this.#scope.metadataOnly ? { ...list, items: list.items.map((object) => this.#reduced(object)) } : list;
  }

  async update(object: T, options: MutateOptions = {}): Promise<Stored<T>> {
    const { name = '', namespace } = object.metadata ?? {};
    const target = { name, namespace: this.#scope.namespace ?? namespace };
    const { signal } = options;
    return this.#send<Stored<T>>({
      method: 'PUT',
      ...target,
      query: mutateQuery(options),
      body: this.#encoded(object),
      signal,
    });
  }

  async patch(name: string, type: PatchType, patch: unknown, options: MutateOptions = {}): Promise<Stored<T>> {
    return this.#patch<Stored<T>>({ name }, type, patch, options);
  }

  async apply(configuration: ApplyConfiguration<T>, options: ApplyOptions): Promise<Stored<T>> {
    const { resource, kind, namespace } = this.#scope;
    const object: KubeObject = {
      ...(kind ? { kind } : {}),
      apiVersion: apiVersionOf(resource),
      ...(configuration as KubeObject),
    };
    const { name = '', namespace: ownNamespace } = object.metadata ?? {};
    return this.#patch<Stored<T>>({ name, namespace: namespace ?? ownNamespace }, 'apply', object, options);
  }

  async delete(name: string, options: DeleteOptions = {}): Promise<Stored<T> | Status> {
    return this.#send<Stored<T> | Status>({
      method: 'DELETE',
      name,
      body: optionalBody(deleteBody(options)),
      signal: options.signal,
    });
  }

  async deleteCollection(options: DeleteOptions & ListOptions = {}): Promise<Status | KubeList<Stored<T>>> {
    const { signal } = options;
    return this.#send({ method: 'DELETE', query: listQuery(options), body: optionalBody(deleteBody(options)), signal });
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
      [Symbol.asyncIterator]: () =>
        new HttpWatch<T>({ clock: this.#transport.clock, format: this.#scope.format, open, signal, timeoutMs, reduce }),
    };
  }

  async getSubresource(name: string, subresource: string): Promise<KubeObject> {
    return this.#send({ method: 'GET', name, subresource, format: jsonFormat });
  }

  async updateSubresource(
    name: string,
    subresource: string,
    body: KubeObject,
    options: MutateOptions = {},
  ): Promise<KubeObject> {
    const { signal } = options;
    const query = mutateQuery(options);
    return this.#send({ method: 'PUT', name, subresource, query, body: jsonBody(body), signal, format: jsonFormat });
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
    const query = mutateQuery(options);
    return this.#send({ method: 'POST', name, subresource, query, body: jsonBody(body), signal, format: jsonFormat });
  }

  #patch<R>(
    target: Pick<Parts, 'name' | 'namespace' | 'subresource'>,
    type: PatchType,
    patch: unknown,
    options: MutateOptions,
  ): Promise<R> {
    const { signal } = options;
    const query = mutateQuery(options);
    const format = target.subresource === undefined ? this.#scope.format : jsonFormat;
    return this.#send<R>({ method: 'PATCH', ...target, query, body: jsonBody(patch, PatchType[type]), signal, format });
  }

  #call({ namespace = this.#scope.namespace, name, subresource, query = '', ...parts }: Parts): HttpCall {
    const { method, signal, body, format = this.#scope.format, accept = format.accept } = parts;
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
      ...(body === undefined ? {} : { body }),
    };
  }

  async #send<R>(parts: Parts): Promise<R> {
    const { format = this.#scope.format } = parts;
    return format.decode(await this.#transport.send(this.#call(parts))) as R;
  }

  #accept(shape: 'one' | 'list'): string {
    const { metadataOnly, format, brand } = this.#scope;
    return metadataOnly ? metadataAccept(shape, brand) : format.accept;
  }

  #reduced(object: Stored<T>): Stored<T> {
    return this.#scope.metadataOnly ? (metadataOf(object) as Stored<T>) : object;
  }

  /** Encodes an object as a request body with apiVersion and kind, which some servers require. */
  #encoded(object: T): WireBody {
    const { kind, resource, format } = this.#scope;
    return format.encode(kind === undefined ? object : { apiVersion: apiVersionOf(resource), kind, ...object });
  }
}

/** An {@link ApiClient} with its own connections. */
export interface HttpApiClient extends ApiClient {
  /** Aborts running requests and watches and closes every connection. Idempotent. */
  close(): void;
  /**
   * Prepares the replacement by another client: ends watches, waits for running requests, then closes every connection.
   */
  retire(): void;
}

/**
 * A client for the API of a server over HTTP or HTTPS. Errors of the server are `StatusError`s, as for the in-process
 * client. A request without a response fails with a `ConnectionError`, whose code states whether the server may have
 * acted.
 *
 * @throws Error for contradictory options; nothing is sent before the first call
 */
export function createHttpClient(options: HttpClientOptions): HttpApiClient {
  const transport = new HttpTransport(options);
  const { encoding = 'json', brand = defaultBrand } = options;
  const formats = new WeakMap<KindDefinition, WireFormat>();
  const formatOf = (kind: KindDefinition): WireFormat => {
    if (encoding === 'json' || !kind.protobuf) return jsonFormat;
    let format = formats.get(kind);
    if (format === undefined) {
      format = protobufFormat(kind, brand);
      formats.set(kind, format);
    }
    return format;
  };
  return {
    resource: (kind) =>
      new HttpResourceClient(transport, {
        resource: { group: kind.group, version: kind.version, resource: kind.names.plural },
        kind: kind.kind,
        format: formatOf(kind),
        brand,
      }),
    dynamic: (resource, { metadataOnly = false } = {}) =>
      new HttpResourceClient<KubeObject>(transport, {
        resource,
        metadataOnly: metadataOnly !== false,
        format: jsonFormat,
        brand,
      }),
    discover: () => discover(transport),
    close: () => transport.close(),
    retire: () => transport.retire(),
  };
}
