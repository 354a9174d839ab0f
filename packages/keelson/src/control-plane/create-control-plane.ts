import { createInProcessClient } from '@keelson/client';
import type { CertificateSigner, ControllerOptions } from '@keelson/controllers';
import {
  type AdmissionPlugin,
  type ApiClient,
  type AuthenticateToken,
  type Authorizer,
  type Clock,
  createResourceRegistry,
  type KindDefinition,
  type KubeObject,
  type Logger,
  type Metrics,
  namespaceLifecycle,
  noMetrics,
  type ResourceClient,
  type ResourceRegistry,
  type Service,
  ServiceHost,
  type StorageError,
  silentLogger,
  systemClock,
} from '@keelson/core';
import { builtinKinds, Lease, Namespace, Node, Pod } from '@keelson/kinds';
import { groupAuthorizer } from '../auth/group-authorizer.ts';
import { nodeRestriction } from '../auth/node-restriction.ts';
import type { MemoryBudgets } from '../config/memory-budgets.ts';
import type { HistoryWindow, ReadMode, StorageChoice, WatchWindow } from '../config/storage-choice.ts';
import type { Listening, ListenOptions } from '../server/listen-plane.ts';
import type { PlaneStores } from '../storage/plane-stores.ts';
import { relaxedReads } from '../storage/relaxed-reads.ts';
import { builtinControllers, electedControllers, startedInTime } from './controllers.ts';
import { makeStores } from './make-stores.ts';
import { processAnchor, systemNamespaces } from './plane-services.ts';

export interface ControlPlaneOptions {
  /** Kinds to serve beside the built-in ones. */
  readonly kinds?: readonly KindDefinition[];
  /** False leaves the built-in kinds out (then no namespaces exist, and no controllers run). Default true. */
  readonly builtinKinds?: boolean;
  /**
   * A storage URL, an adapter with its options, a store that is not open yet, or routes to several. Default `memory:`.
   */
  readonly storage?: StorageChoice;
  /** What stores keep for watches and pages of the past, unless they say so themselves. */
  readonly history?: HistoryWindow;
  /** What the watch cache keeps in memory of the latest changes. */
  readonly watchWindow?: WatchWindow;
  /**
   * Memory, in bytes, for data that is kept to save repeated work. The budgets of stored objects are for all stores of
   * the plane together; those of responses are for each listener.
   */
  readonly memoryBudgets?: MemoryBudgets;
  /**
   * What gets and lists over HTTP show that name no resourceVersion. Default `consistent`; calls in process always are.
   */
  readonly reads?: ReadMode;
  /**
   * Directory where the plane writes down which stores it used, to refuse others under their names. Absent = nothing is
   * compared.
   */
  readonly data?: string;
  /** Take a different store instead of refusing it. Default false. */
  readonly acceptNewStore?: boolean;
  /** Plugins that run after the built-in ones. */
  readonly admission?: readonly AdmissionPlugin[];
  /** Who may do what over HTTP, and what access reviews say about it. Default: the rules of {@link groupAuthorizer}. */
  readonly authorizer?: Authorizer;
  /**
   * Whose bearer token it is, over HTTPS and in token reviews. Default: no token is known, and requests with one are
   * 401.
   */
  readonly authenticateToken?: AuthenticateToken;
  /**
   * Issues the certificates of approved requests. Absent: requests for certificates are kept, and nothing becomes of
   * them.
   */
  readonly certificateSigner?: CertificateSigner;
  /**
   * Namespace deletion, garbage collection of objects and of pods, certificates. Default true. On a store that several
   * processes may write, one of the servers runs them and the others stand by.
   */
  readonly controllers?: boolean;
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  /**
   * Ends the start at any point: what was started is stopped, and {@link createControlPlane} fails with the signal's
   * reason.
   */
  readonly signal?: AbortSignal;
  readonly continueTokens?: {
    /** At least 16 bytes; the same on every server of one store. Default: one that is kept in the store. */
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
  /** Resolves with the reason when a store has stopped for good; nothing but {@link close} is useful afterwards. */
  readonly failed: Promise<StorageError>;
  /** Serves the API over HTTP or HTTPS. */
  listen(options?: ListenOptions): Promise<Listening>;
  /** Stops listening, controllers, caches and the store, in this order. Idempotent. */
  close(): Promise<void>;
}

/** Builds and starts a control plane; resolves when it answers. */
export async function createControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { clock = systemClock, logger = silentLogger, metrics = noMetrics, authorizer = groupAuthorizer } = options;
  const { authenticateToken } = options;
  const withBuiltin = options.builtinKinds !== false;
  const kinds = [...(withBuiltin ? builtinKinds : []), ...(options.kinds ?? [])];
  const surroundings = { clock, logger, metrics };
  const stores = await makeStores(options, kinds, surroundings);
  const registry = createResourceRegistry({
    kinds,
    storages: stores,
    tokens: (kind) => stores.tokensOf(kind),
    admission: [...(withBuiltin ? builtinAdmission(stores) : []), ...(options.admission ?? [])],
    authorizer,
    ...(authenticateToken ? { authenticateToken } : {}),
    clock,
    logger,
  });
  const api = createInProcessClient(registry, { clock });
  const host = new ServiceHost(
    [
      processAnchor(),
      {
        name: 'storages',
        start: () => stores.start(),
        stop: () => stores.stop(),
        waitingFor: () => stores.waitingFor(),
      },
      ...(withBuiltin ? [systemNamespaces(api)] : []),
      ...(withBuiltin && options.controllers !== false
        ? controllersOn(stores, { client: api, ...surroundings }, options.certificateSigner)
        : []),
    ],
    clock,
    logger,
  );
  await host.start(options.signal);
  const listening = new Set<Listening>();
  const close = async () => {
    await Promise.all([...listening].map((server) => server.close()));
    await host.stop();
  };
  return {
    client: (kind) => api.resource(kind),
    api,
    registry,
    ready: () => stores.ready(),
    failed: stores.failed(),
    listen: async (listenOptions = {}) => {
      // A plane that is used in process never loads the HTTP server.
      const { listenPlane } = await import('../server/listen-plane.ts');
      const server = await listenPlane(
        {
          ...surroundings,
          registry: stores.all.some(({ reads }) => reads === 'any')
            ? relaxedReads(registry, (kind) => stores.of(kind).reads)
            : registry,
          authorizer,
          authenticateToken,
          checks: stores.checks(),
          budgets: options.memoryBudgets,
          ...(withBuiltin ? { nodes: api.resource(Node) } : {}),
        },
        listenOptions,
      );
      listening.add(server);
      return server;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Objects are created in existing namespaces only; an agent modifies only its own node and the pods bound to it. */
function builtinAdmission(stores: PlaneStores): AdmissionPlugin[] {
  return [
    namespaceLifecycle({ kind: Namespace, storage: stores.forKind(Namespace) }),
    nodeRestriction({ nodes: stores.forKind(Node), pods: stores.forKind(Pod) }),
  ];
}

/** A store that one process has for itself needs no election. */
function controllersOn(
  stores: PlaneStores,
  options: ControllerOptions,
  signer: CertificateSigner | undefined,
): Service[] {
  const services = () => builtinControllers(options, signer);
  if (stores.of(Lease).capabilities.multiWriter) return [electedControllers(options, services)];
  return services().map((service) => startedInTime(service, options));
}
