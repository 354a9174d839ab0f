import {
  type AuditSink,
  Authentication,
  createServiceAccounts,
  Encryption,
  openAudit,
  type ServiceAccounts,
} from '@keelson/access';
import type { KeyPair } from '@keelson/certificates';
import { createInProcessClient } from '@keelson/client';
import { ServiceAddressRepair } from '@keelson/controllers';
import type { ApiClient, KindDefinition, StorageError } from '@keelson/core';
import {
  createResourceRegistry,
  type ObjectAllocator,
  type ResourceRegistry,
  UsageError,
} from '@keelson/core/internal';
import {
  type Clock,
  noMetrics,
  type Service as RunningService,
  ServiceHost,
  silentLogger,
  systemClock,
} from '@keelson/core/runtime';
import { AggregatedApis, admissionPolicies, admissionWebhooks, LocalApiServices } from '@keelson/extensions';
import { builtinKinds, Lease, Node, Secret, Service } from '@keelson/kinds';
import { CachedObjects } from '../admission/cached-objects.ts';
import { withDisruptionBudgets } from '../admission/eviction.ts';
import { bothAllocators, quotaAllocator } from '../admission/resource-quota.ts';
import { NodeMetricsSource } from '../metrics/node-metrics-source.ts';
import { tracedPlugin } from '../observe/traced-plane.ts';
import type { SharedSocket } from '../server/listen.ts';
import type { HandlerOptions, Listening, ListenOptions, PlaneHandler } from '../server/listen-options.ts';
import type { ServedPlane } from '../server/listen-plane.ts';
import type { PlaneAccess } from '../server/request-state.ts';
import { planeServiceAddresses } from '../service-addresses/plane-service-addresses.ts';
import type { PlaneStores } from '../storage/plane-stores.ts';
import { relaxedReads } from '../storage/relaxed-reads.ts';
import { type Authorization, type AuthorizationContext, makeAuthorization } from './authorization.ts';
import { builtinAdmission } from './builtin-admission.ts';
import { componentStatuses, type ProcessControllers, processControllers } from './component-statuses.ts';
import { type ControllerChoice, chooseControllers } from './controller-choice.ts';
import { controllerServices, type PlaneControllerOptions, startedAfter, startedInTime } from './controllers.ts';
import { completeKind, customResources } from './extensions.ts';
import { FlowControlObjects } from './flow-control-objects.ts';
import { makeStores, type StoreWrapper } from './make-stores.ts';
import { withOptionNames } from './option-names.ts';
import type { ControlPlaneOptions } from './plane-options.ts';
import { processAnchor, processWarnings, systemObjects } from './plane-services.ts';

/** A running control plane. */
export interface ControlPlane extends PlaneAccess, AsyncDisposable {
  /** The served kinds. Kinds can be added and removed while the plane runs. */
  readonly registry: ResourceRegistry;
  /** True unless a store is unavailable. */
  ready(): boolean;
  /** Resolves with the reason when a store has failed permanently. The plane can then only be closed. */
  readonly failed: Promise<StorageError>;
  /** Serves the API over HTTP or HTTPS, with middleware and routes of the program. */
  listen(options?: ListenOptions): Promise<Listening>;
  /** Prepares the API to be mounted in a server of the program, at its root or below a path. */
  handler(options?: HandlerOptions): Promise<PlaneHandler>;
  /** Stops the servers, the controllers, the caches and the stores, in this order. Idempotent. */
  close(): Promise<void>;
}

/** What the threads of one server share. */
export interface PlaneParts {
  readonly wrapStore?: StoreWrapper;
  /** The audit log of all threads. */
  readonly auditLog?: AuditSink;
  /** The controllers of the process, when another thread runs them. */
  readonly controllers?: ProcessControllers;
  /** The socket that the server of this thread accepts connections from. */
  readonly socket?: SharedSocket;
  /** Resolves when the server listens; the controllers start then. Absent: they start when the plane is ready. */
  readonly listening?: Promise<void>;
}

/**
 * Creates and starts a control plane; resolves when it is ready. While a store cannot be reached it retries, and
 * reports that after three seconds: to the option `logger`, or without one as a warning of the process.
 *
 * @throws UsageError for invalid options; the message names the option
 */
export function createControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  return createPlane(options, {}).catch((error: unknown) => {
    throw withOptionNames(error);
  });
}

/** Like {@link createControlPlane}, for `keelson serve` and its worker threads: messages of errors name flags. */
export async function createPlane(options: ControlPlaneOptions, parts: PlaneParts): Promise<ControlPlane> {
  const { clock = systemClock, logger = silentLogger, metrics = noMetrics } = options;
  const withBuiltin = options.builtinKinds !== false;
  const nodeMetrics = withBuiltin ? new NodeMetricsSource({ clock, logger }) : undefined;
  const { tracing } = options;
  const context = { clock, logger, metrics, ...(tracing ? { tracing } : {}) };
  const controllers = chooseControllers(options.controllers ?? true);
  const runs = parts.controllers ?? processControllers(controllers);
  const allKinds = [
    ...(withBuiltin ? [...builtinKinds, componentStatuses({ api: () => api, stores: () => stores, runs, clock })] : []),
    ...(nodeMetrics?.kinds() ?? []),
    ...(options.kinds ?? []),
  ];
  const { encryptionConfigFile: configFile } = options;
  const encryption =
    configFile === undefined ? undefined : await Encryption.open({ configFile, kinds: allKinds, ...context });
  const { authorizer, admission, services } = await authorizationOf(options, {
    ...{ clock, logger, servesRoles: withBuiltin },
    api: () => api,
    storageOf: (kind) => stores.forKind(kind),
  });
  const stores = await makeStores(options, allKinds, context, encryption, parts.wrapStore);
  const accounts =
    withBuiltin && options.serviceAccounts ? createServiceAccounts(options.serviceAccounts, stores, clock) : undefined;
  const authentication = await Authentication.open(options.authentication ?? {}, {
    ...context,
    tokens: [
      ...(options.authenticateToken ? [{ name: 'application', authenticate: options.authenticateToken }] : []),
      ...(accounts ? [{ name: 'service accounts', authenticate: accounts.authenticateToken }] : []),
    ],
    secrets: withBuiltin ? () => api.resource(Secret) : undefined,
    audiences: accounts?.audiences ?? [],
  });
  const kinds = allKinds.map((kind) => completeKind(withDisruptionBudgets(accounts?.withTokens(kind) ?? kind, stores)));
  const audit = options.audit && (await openAudit(options.audit, context, parts.auditLog));
  const cached = new CachedObjects(stores);
  const addresses = withBuiltin
    ? planeServiceAddresses(options.services ?? {}, {
        ...{ store: () => stores.of(Service).store, client: () => api, cached, clock, logger },
      })
    : undefined;
  const plugins = [
    ...(withBuiltin
      ? builtinAdmission({
          ...{ stores, accounts, cached, authorizer, clock, controllers: runs.names },
          disabled: options.disabledAdmissionPlugins,
        })
      : []),
    ...admission,
    ...(options.admission ?? []),
  ];
  const webhooks = withBuiltin
    ? admissionWebhooks({
        ...{ client: () => api, registry: () => registry, reinvoked: plugins, authorizer, ...context },
      })
    : undefined;
  const policies = withBuiltin
    ? admissionPolicies({ client: () => api, registry: () => registry, authorizer, ...context })
    : undefined;
  const allPlugins = [...plugins, ...(policies?.plugins ?? []), ...(webhooks?.plugins ?? [])];
  const registry = createResourceRegistry({
    kinds,
    storages: stores,
    tokens: (kind) => stores.tokensOf(kind),
    ...(addresses ? { allocatorOf: allocatorsOf(stores, cached, addresses.allocator, clock) } : {}),
    admission: tracing ? allPlugins.map((plugin) => tracedPlugin(plugin, tracing)) : allPlugins,
    authorizer,
    authenticateToken: authentication.reviewToken,
    clock,
    logger,
  });
  const clientOf = (userAgent?: string): ApiClient =>
    createInProcessClient(registry, { clock, ...(userAgent === undefined ? {} : { userAgent }) });
  const api = clientOf('kube-apiserver');
  const programApi = clientOf();
  let frontProxy: KeyPair | undefined;
  const aggregation = withBuiltin
    ? {
        apis: new AggregatedApis({ client: api, identity: () => frontProxy, ...context }),
        local: new LocalApiServices({ client: api, registry, ...context }),
      }
    : undefined;
  const otherApis = aggregation ? { otherApis: aggregation.apis } : {};
  let startControllers = () => {};
  const controllersStart =
    parts.listening ??
    new Promise<void>((resolve) => {
      startControllers = resolve;
    });
  const flows = withBuiltin
    ? new FlowControlObjects({ client: () => api, after: parts.listening, ...context })
    : undefined;
  const host = new ServiceHost(
    [
      processAnchor(),
      { name: 'authentication', start: async () => {}, stop: async () => authentication.stop() },
      {
        name: 'storages',
        start: () => stores.start(),
        stop: () => stores.stop(),
        waitingFor: () => stores.waitingFor(),
      },
      ...(webhooks ? [startedInTime(webhooks.service, context)] : []),
      ...(policies ? [startedInTime(policies.service, context)] : []),
      ...(withBuiltin
        ? [systemObjects(api, context), customResources(stores, { client: api, ...context }, () => registry)]
        : []),
      ...(addresses
        ? [startedInTime(new ServiceAddressRepair({ client: api, ...context, records: addresses.records }), context)]
        : []),
      ...services().map((service) => startedInTime(service, context)),
      ...(aggregation ? [startedInTime(aggregation.apis, context), aggregation.local] : []),
      ...(flows ? [flows] : []),
      ...(withBuiltin
        ? controllersOn(stores, { clientOf, registry, ...otherApis, ...context }, controllers, options, accounts).map(
            (service) => startedAfter(controllersStart, service, context),
          )
        : []),
    ],
    clock,
    options.logger ?? processWarnings,
  );
  await host.start(options.signal).catch(async (error: unknown) => {
    await Promise.all([audit?.close(), encryption?.stop()]);
    throw error;
  });
  // After the first requests of the caller, which the lists of the controllers would delay.
  setImmediate(startControllers);
  const listening = new Set<Pick<Listening, 'close'>>();
  const close = async () => {
    await Promise.all([...listening].map((server) => server.close()));
    await audit?.close();
    await encryption?.stop();
    await nodeMetrics?.stop();
    await host.stop();
  };
  const served = (): ServedPlane => ({
    ...context,
    plane,
    registry: stores.all.some(({ reads }) => reads === 'any')
      ? relaxedReads(registry, (kind) => stores.of(kind).reads)
      : registry,
    authorizer,
    authentication,
    auditor: audit?.auditor,
    encryption,
    checks: stores.checks(),
    budgets: options.memoryBudgets,
    followFlowRules: flows?.follow,
    ...(withBuiltin ? { nodes: api.resource(Node) } : {}),
    ...(aggregation ? { aggregated: aggregation.apis } : {}),
    useFrontProxy: (identity) => {
      frontProxy = identity;
    },
    reachAgents: (dialer) => nodeMetrics?.connect(api, dialer),
    ...(accounts ? { serviceAccounts: { api, documents: accounts.documents } } : {}),
  });
  const plane: ControlPlane = {
    client: (kind) => programApi.resource(kind),
    api: programApi,
    registry,
    ...context,
    ready: () => stores.ready(),
    failed: stores.failed(),
    listen: async (listenOptions = {}) => {
      // Loaded on demand: a plane without HTTP never loads the server.
      const { listenPlane } = await import('../server/listen-plane.ts');
      const server = await listenPlane(served(), listenOptions, parts.socket);
      listening.add(server);
      return server;
    },
    handler: async (handlerOptions = {}) => {
      const { mountPlane } = await import('../server/listen-plane.ts');
      const handler = mountPlane(served(), handlerOptions);
      listening.add(handler);
      return handler;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
  return plane;
}

async function authorizationOf(options: ControlPlaneOptions, context: AuthorizationContext): Promise<Authorization> {
  const { authorizer, authorization } = options;
  if (authorizer === undefined) return makeAuthorization(authorization ?? {}, context);
  if (authorization !== undefined) throw new UsageError('the options authorization and authorizer exclude each other');
  return { authorizer, admission: [], services: () => [] };
}

/** Returns the allocator of a kind: objects of every kind are charged to quotas, and services get addresses as well. */
function allocatorsOf(
  stores: PlaneStores,
  objects: CachedObjects,
  services: ObjectAllocator,
  clock: Clock,
): (kind: KindDefinition) => ObjectAllocator | undefined {
  return (kind) => {
    const quotas = quotaAllocator(kind, { objects, storages: stores, clock });
    return kind.group === '' && kind.kind === 'Service' && quotas ? bothAllocators(quotas, services) : quotas;
  };
}

/** A store with a single writer requires no election. */
function controllersOn(
  stores: PlaneStores,
  options: PlaneControllerOptions,
  controllers: ControllerChoice,
  { certificateSigner: signer, serviceAccounts: given }: ControlPlaneOptions,
  accounts: ServiceAccounts | undefined,
): RunningService[] {
  const { multiWriter } = stores.of(Lease).capabilities;
  const authority = given?.certificateAuthority;
  const certificateAuthority = typeof authority === 'string' ? () => authority : authority;
  const serviceAccounts = accounts && { certificateAuthority, signLegacyToken: accounts.signLegacyToken };
  return controllerServices(controllers, options, { signer, serviceAccounts }, multiWriter);
}
