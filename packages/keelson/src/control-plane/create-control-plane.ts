import { randomBytes } from 'node:crypto';
import { GarbageCollector, NamespaceController } from '@keelson/controllers';
import {
  type AdmissionPlugin,
  type ApiClient,
  type Authorizer,
  type Clock,
  type KindDefinition,
  type KubeObject,
  type Logger,
  type Metrics,
  noMetrics,
  type ResourceClient,
  type ResourceRegistry,
  ServiceHost,
  type Store,
  StoreToken,
  silentLogger,
  systemClock,
} from '@keelson/core';
import { builtinKinds } from '@keelson/kinds';
import { Container } from 'inversify';
import { groupAuthorizer } from '../auth/group-authorizer.ts';
import type { AdapterChoice } from '../config/options.ts';
import type { Listening, ListenOptions } from '../server/listen-plane.ts';
import { storageModule } from '../storage/open-storage.ts';
import { planeModule } from './plane.module.ts';
import { processAnchor } from './process-anchor.ts';
import { storeService } from './store-service.ts';
import { systemNamespaces } from './system-namespaces.ts';
import { ApiClientToken, RegistryToken, StoragesToken } from './tokens.ts';

export interface ControlPlaneOptions {
  /** Kinds to serve beside the built-in ones. */
  readonly kinds?: readonly KindDefinition[];
  /** False leaves the built-in kinds out (then no namespaces exist, and no controllers run). Default true. */
  readonly builtinKinds?: boolean;
  /** A storage URL, an adapter with its options, or an open-able store. Default `memory:`. */
  readonly storage?: string | AdapterChoice | Store;
  /** Plugins that run after the built-in ones. */
  readonly admission?: readonly AdmissionPlugin[];
  /** Who may do what over HTTP, and what access reviews say about it. Default: the rules of {@link groupAuthorizer}. */
  readonly authorizer?: Authorizer;
  /** Namespace deletion and garbage collection. Default true. */
  readonly controllers?: boolean;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  readonly continueTokens?: {
    /** At least 16 bytes; the same on every server of one store. Default: random, so that a restart voids all tokens. */
    readonly secret?: Buffer;
    /** Default five minutes. */
    readonly lifetimeMs?: number;
  };
}

/** A running control plane. */
export interface ControlPlane extends AsyncDisposable {
  /** Typed access to the objects of a kind. */
  client<T extends KubeObject>(kind: KindDefinition<T>): ResourceClient<T>;
  /** The whole API, for code that works on any kind. */
  readonly api: ApiClient;
  /** Which kinds are served; kinds can be added and removed while running. */
  readonly registry: ResourceRegistry;
  /** True while reads and writes are answered without waiting for the store to come back. */
  ready(): boolean;
  /** Serves the API over HTTP or HTTPS. */
  listen(options?: ListenOptions): Promise<Listening>;
  /** Stops listening, controllers, caches and the store, in this order. Idempotent. */
  close(): Promise<void>;
}

/** Builds and starts a control plane; resolves when it answers. */
export async function createControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { clock = systemClock, logger = silentLogger, metrics = noMetrics, authorizer = groupAuthorizer } = options;
  const withBuiltin = options.builtinKinds !== false;
  const kinds = [...(withBuiltin ? builtinKinds : []), ...(options.kinds ?? [])];
  const container = new Container();
  await container.loadAsync(
    await storageOf(options.storage ?? 'memory:'),
    planeModule({
      clock,
      logger,
      metrics,
      kinds,
      admission: options.admission ?? [],
      authorizer,
      tokenSecret: options.continueTokens?.secret ?? randomBytes(32),
      ...(options.continueTokens?.lifetimeMs === undefined ? {} : { tokenLifetimeMs: options.continueTokens.lifetimeMs }),
      namespaces: withBuiltin,
    }),
  );
  const store = container.get<Store>(StoreToken.id);
  const storages = container.get<{ ready(): boolean; start(): Promise<void>; stop(): Promise<void> }>(StoragesToken.id);
  const registry = container.get<ResourceRegistry>(RegistryToken.id);
  const api = container.get<ApiClient>(ApiClientToken.id);
  const controllerOptions = { client: api, clock, logger, metrics };
  const host = new ServiceHost(
    [
      processAnchor(),
      storeService(store),
      { name: 'storages', start: () => storages.start(), stop: () => storages.stop() },
      ...(withBuiltin ? [systemNamespaces(api)] : []),
      ...(withBuiltin && options.controllers !== false
        ? [new GarbageCollector(controllerOptions), new NamespaceController(controllerOptions)]
        : []),
    ],
    clock,
    logger,
  );
  await host.start();
  const listening = new Set<Listening>();
  const close = async () => {
    await Promise.all([...listening].map((server) => server.close()));
    await host.stop();
  };
  return {
    client: (kind) => api.resource(kind),
    api,
    registry,
    ready: () => storages.ready(),
    listen: async (listenOptions = {}) => {
      // A plane that is used in process never loads the HTTP server.
      const { listenPlane } = await import('../server/listen-plane.ts');
      const server = await listenPlane(
        { registry, clock, logger, metrics, authorizer, ready: () => storages.ready() },
        listenOptions,
      );
      listening.add(server);
      return server;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function isStore(storage: string | AdapterChoice | Store): storage is Store {
  return typeof storage === 'object' && 'write' in storage && typeof storage.write === 'function';
}

async function storageOf(storage: string | AdapterChoice | Store) {
  if (!isStore(storage)) return storageModule(storage);
  const { moduleOf, provide } = await import('@keelson/core');
  return moduleOf((binding) => provide(binding, StoreToken, [], () => storage));
}
