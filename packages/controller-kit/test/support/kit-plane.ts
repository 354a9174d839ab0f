import { createInProcessClient } from '@keelson/client';
import type { ApiClient, ClientWatchEvent, KubeObject, ResourceClient, WatchOptions } from '@keelson/core';
import { createCachedStorages, createContinueTokens, createResourceRegistry } from '@keelson/core/internal';
import { FakeClock, noMetrics, silentLogger } from '@keelson/core/runtime';
import { builtinKinds } from '@keelson/kinds';
import { MemoryStore } from '@keelson/storage-memory';
import { type ListeningLogger, listeningLogger } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import { type AnyController, ControllerManager } from '../../src/index.ts';

/** A request of the controllers, as `create pods`. */
type Intercept = (request: string, run: () => Promise<unknown>) => Promise<unknown>;

/** A registry on memory, and a client of the controllers whose watches and writes the test controls. */
export class KitPlane {
  readonly clock: FakeClock;
  readonly logger: ListeningLogger = listeningLogger();
  readonly api: ApiClient;
  /** The client of the controllers. */
  readonly client: ApiClient;
  /** Writes of the controllers, as `create pods`. */
  readonly requests: string[] = [];
  /** Replaces a request of the controllers. */
  intercept: Intercept = (_request, run) => run();
  readonly #held = new Map<string, { readonly promise: Promise<void>; readonly release: () => void }>();
  /** Number of watches of the controllers by resource. */
  readonly watches = new Map<string, number>();

  private constructor(api: ApiClient, clock: FakeClock) {
    this.api = api;
    this.clock = clock;
    this.client = {
      resource: (kind) => this.#controlled(api.resource(kind)),
      dynamic: (resource, options) => this.#controlled(api.dynamic(resource, options)),
      discover: () => api.discover(),
    };
  }

  static async start(t: ExecutionContext): Promise<KitPlane> {
    const clock = new FakeClock();
    const store = new MemoryStore({ clock });
    await store.ready();
    const storages = createCachedStorages({ store, clock });
    await storages.start();
    const registry = createResourceRegistry({
      ...{ storages, clock, kinds: builtinKinds, admission: [], logger: silentLogger },
      tokens: createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'test', clock }),
    });
    t.teardown(async () => {
      await storages.stop();
      await store.close();
    });
    return new KitPlane(createInProcessClient(registry, { clock }), clock);
  }

  /** Runs controllers until the end of the test. */
  async run(
    t: ExecutionContext,
    controllers: readonly AnyController[],
    metrics = noMetrics,
  ): Promise<ControllerManager> {
    const { client, clock, logger } = this;
    const manager = new ControllerManager({ controllers, client, clock, logger, metrics });
    t.teardown(async () => {
      for (const resource of this.#held.keys()) this.release(resource);
      await manager.stop();
    });
    await manager.start();
    return manager;
  }

  /** Keeps the events of a resource from the informers of the controllers. */
  hold(resource: string): void {
    let release = () => {};
    const promise = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held.set(resource, { promise, release });
  }

  release(resource: string): void {
    this.#held.get(resource)?.release();
    this.#held.delete(resource);
  }

  #controlled<T extends KubeObject>(inner: ResourceClient<T>): ResourceClient<T> {
    const { resource } = inner.resourceName;
    const call = <R>(verb: string, run: () => Promise<R>) => {
      const request = `${verb} ${resource}`;
      this.requests.push(request);
      return this.intercept(request, run) as Promise<R>;
    };
    return {
      resourceName: inner.resourceName,
      namespace: (name) => this.#controlled(inner.namespace(name)),
      create: (...args) => call('create', () => inner.create(...args)),
      get: (...args) => call('get', () => inner.get(...args)),
      list: (...args) => call('list', () => inner.list(...args)),
      update: (...args) => call('update', () => inner.update(...args)),
      patch: (...args) => call('patch', () => inner.patch(...args)),
      apply: (...args) => call('patch', () => inner.apply(...args)),
      delete: (...args) => call('delete', () => inner.delete(...args)),
      deleteCollection: (...args) => call('deletecollection', () => inner.deleteCollection(...args)),
      watch: (options) => this.#watch(inner, options),
      getSubresource: (...args) => call('get', () => inner.getSubresource(...args)),
      updateSubresource: (...args) => call('update', () => inner.updateSubresource(...args)),
      patchSubresource: (...args) => call('patch', () => inner.patchSubresource(...args)),
      createSubresource: (...args) => call('create', () => inner.createSubresource(...args)),
    };
  }

  async *#watch<T extends KubeObject>(
    inner: ResourceClient<T>,
    options?: WatchOptions,
  ): AsyncGenerator<ClientWatchEvent<T>> {
    const { resource } = inner.resourceName;
    this.watches.set(resource, (this.watches.get(resource) ?? 0) + 1);
    for await (const event of inner.watch(options)) {
      await this.#held.get(resource)?.promise;
      yield event;
    }
  }
}
