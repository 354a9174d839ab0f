import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { bootstrapTokenCleaner } from '@keelson/access';
import type { Informer } from '@keelson/client';
import {
  type AnyController,
  ControllerManager,
  InformerPool,
  runElected,
  type SharedInformer,
} from '@keelson/controller-kit';
import {
  type CertificateSigner,
  type ControllerOptions,
  certificateController,
  clusterRoleAggregation,
  disruptionController,
  GarbageCollector,
  namespaceController,
  namespaceDefaults,
  type OtherApis,
  podGarbageCollector,
  resourceQuotaController,
  serviceCidrController,
  storageProtection,
  type TokenSecretsOptions,
  tokenSecrets,
} from '@keelson/controllers';
import type { ApiClient, KindDefinition, KubeObject } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { type KnownKinds, policyTypeChecking } from '@keelson/extensions';
import { Scheduler } from '@keelson/scheduler';
import type { ControllerChoice } from './controller-choice.ts';

/** The Leases by which one of several processes is elected: one for each set that a process may run alone. */
export const controllerLeases = {
  api: { namespace: 'kube-system', name: 'keelson-controllers' },
  workloads: { namespace: 'kube-system', name: 'keelson-workload-controllers' },
  scheduler: { namespace: 'kube-system', name: 'keelson-scheduler' },
} as const;

/**
 * A standby takes over at most one lease duration and two attempts after the last renewal: 9 s + 2 * 2.4 s, below the
 * documented 15 s.
 */
const times = { leaseDurationMs: 9_000, renewDeadlineMs: 6_000, retryPeriodMs: 2_000 } as const;

/** {@link ControllerOptions} with a function that creates the client of a field manager, one for each controller. */
export interface PlaneControllerOptions extends Omit<ControllerOptions, 'client'> {
  readonly clientOf: (userAgent: string) => ApiClient;
  /** The kinds of the server. Absent outside of a server: the types in admission policies are not checked. */
  readonly registry?: KnownKinds;
  /** The API groups of other servers, which clients of this process do not reach. */
  readonly otherApis?: OtherApis;
}

/** Credentials that some controllers need in addition to {@link ControllerOptions}. */
export interface ControllerCredentials {
  /** Signs the certificates of approved requests. Absent: no certificates are issued. */
  readonly signer?: CertificateSigner | undefined;
  /** Certificate authority and token signer of service accounts. Absent: namespaces get no service account. */
  readonly serviceAccounts?:
    | {
        /** Certificates of the authority that is published to every namespace. Absent: none is published. */
        readonly certificateAuthority?: (() => string) | undefined;
        /** Signs the tokens in Secrets of service accounts. Absent: these Secrets get no token. */
        readonly signLegacyToken?: TokenSecretsOptions['sign'];
      }
    | undefined;
}

/** The controllers of the set `api`; `garbage-collector-controller` follows all kinds and is a service of its own. */
function apiControllers(
  { client, clock, registry, otherApis }: ControllerOptions & Pick<PlaneControllerOptions, 'registry' | 'otherApis'>,
  { signer, serviceAccounts }: ControllerCredentials,
  sharesPods: boolean,
): AnyController[] {
  return [
    ...(signer === undefined ? [] : [certificateController(signer)]),
    clusterRoleAggregation,
    disruptionController,
    namespaceController(client, clock, otherApis),
    podGarbageCollector({ sharesPods }),
    resourceQuotaController(),
    serviceCidrController,
    ...storageProtection.map(({ controller }) => controller),
    ...(serviceAccounts === undefined ? [] : accountControllers(serviceAccounts)),
    bootstrapTokenCleaner,
    ...(registry === undefined ? [] : [policyTypeChecking(registry)]),
  ];
}

function accountControllers({
  certificateAuthority: authority,
  signLegacyToken: sign,
}: NonNullable<ControllerCredentials['serviceAccounts']>): AnyController[] {
  return [namespaceDefaults(authority), ...(sign === undefined ? [] : [tokenSecrets({ sign, authority })])];
}

/**
 * Returns the services that run the chosen controllers.
 *
 * @param elected true: several processes may run them, so that one is elected for each set. A former leader
 *   and its successor may act at the same time for a moment; all deletions contain uid and resourceVersion as
 *   preconditions, so nothing is done twice
 */
export function controllerServices(
  { api, workloads, scheduler }: ControllerChoice,
  { clientOf, registry, otherApis, ...context }: PlaneControllerOptions,
  credentials: ControllerCredentials,
  elected: boolean,
): Service[] {
  const options = { ...context, client: clientOf('kube-controller-manager') };
  const schedulerOptions = { ...context, client: clientOf('kube-scheduler') };
  const chosen = apiControllers(
    { ...options, ...(registry ? { registry } : {}), ...(otherApis ? { otherApis } : {}) },
    credentials,
    workloads.length > 0,
  ).filter(({ name }) => api.some((other) => other === name));
  const garbage = () => (api.includes('garbage-collector-controller') ? [new GarbageCollector(options)] : []);
  const informers = new InformerPool(options);
  const manager = (controllers: readonly AnyController[]) =>
    controllers.length === 0 ? [] : [new ControllerManager({ ...options, controllers, informers })];
  const apiServices = () => [...garbage(), ...manager(chosen)];
  const schedulers = () => (scheduler ? [sharingScheduler(schedulerOptions, informers, workloads.length > 0)] : []);
  if (!elected) {
    const services = [...garbage(), ...manager([...chosen, ...workloads]), ...schedulers()];
    return services.map((service) => startedInTime(service, options));
  }
  const elect = (lease: (typeof controllerLeases)[keyof typeof controllerLeases], services: () => readonly Service[]) =>
    runElected({
      ...{ ...options, ...lease, ...times, identity: candidateName() },
      services: () => services().map((service) => startedInTime(service, options)),
    });
  return [
    ...(api.length === 0 ? [] : [elect(controllerLeases.api, apiServices)]),
    ...(workloads.length === 0 ? [] : [elect(controllerLeases.workloads, () => manager(workloads))]),
    ...(scheduler ? [elect(controllerLeases.scheduler, schedulers)] : []),
  ];
}

/**
 * A scheduler that uses the informers of the controllers. Without controllers in this process it has its own, which
 * keep less of each object. The scheduler and the controllers are elected separately, so either may begin first.
 */
function sharingScheduler(options: ControllerOptions, informers: InformerPool, withControllers: boolean): Service {
  const used: SharedInformer[] = [];
  const scheduler = new Scheduler({
    ...options,
    informerOf: <T extends KubeObject>(kind: KindDefinition<T>) => {
      if (!withControllers) return undefined;
      const shared = informers.acquire(kind);
      used.push(shared);
      void shared.informer.start();
      return shared.informer as Informer<KubeObject> as Informer<T>;
    },
  });
  return {
    name: scheduler.name,
    start: () => scheduler.start(),
    stop: async () => {
      await scheduler.stop();
      await Promise.all(used.splice(0).map((informer) => informers.release(informer)));
    },
  };
}

/** Longest time for which the start of the server waits for a controller, in milliseconds. */
const startTimeoutMs = 3_000;

/**
 * Wraps a controller so that the start of the server waits for it only a limited time. A controller that cannot list
 * its objects, for example because one is damaged, retries while the API is served.
 */
export function startedInTime(
  service: Service,
  { clock, logger }: Pick<ControllerOptions, 'clock' | 'logger'>,
): Service {
  return {
    name: service.name,
    start: async () => {
      const starting = service.start();
      let cancel = () => {};
      const late = new Promise<'late'>((resolve) => {
        cancel = clock.after(startTimeoutMs, () => resolve('late'));
      });
      const outcome = await Promise.race([starting, late]).finally(() => cancel());
      if (outcome !== 'late') return;
      const component = service.name;
      logger.warn('controller has not started yet; the API is served without it', { component });
      starting.then(
        () => logger.info('controller has started', { component }),
        (err: unknown) => logger.error('controller could not be started', { component, err }),
      );
    },
    stop: () => service.stop(),
  };
}

/**
 * Wraps a controller so that it starts when `after` has resolved, and the start of the server does not wait for it. Its
 * first lists take a second with 100,000 objects.
 */
export function startedAfter(
  after: Promise<unknown>,
  service: Service,
  { logger }: Pick<ControllerOptions, 'logger'>,
): Service {
  let state: 'waiting' | 'running' | 'stopped' = 'waiting';
  const begin = async () => {
    await after;
    if (state !== 'waiting') return;
    state = 'running';
    await service.start();
  };
  return {
    name: service.name,
    start: async () => {
      begin().catch((err: unknown) => {
        if (state === 'running') logger.error('controller could not be started', { component: service.name, err });
      });
    },
    stop: async () => {
      const isRunning = state === 'running';
      state = 'stopped';
      if (isRunning) await service.stop();
    },
  };
}

/** Identity of this process in the election. */
function candidateName(): string {
  return `${hostname()}_${randomUUID()}`;
}
