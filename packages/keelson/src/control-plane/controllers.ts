import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { BootstrapTokenCleaner } from '@keelson/access';
import { LeaderElector } from '@keelson/client';
import { ControllerManager } from '@keelson/controller-kit';
import {
  CertificateController,
  type CertificateSigner,
  ClusterRoleAggregation,
  type ControllerOptions,
  GarbageCollector,
  NamespaceController,
  NamespaceDefaults,
  PodGarbageCollector,
} from '@keelson/controllers';
import { type Logger, type Service, ServiceHost } from '@keelson/core/runtime';
import { Scheduler } from '@keelson/scheduler';
import type { ApiControllerName, ControllerChoice } from './controller-choice.ts';

/** The Leases by which one of several processes is elected: for the set `api`, and for all others. */
const leases = {
  api: { namespace: 'kube-system', name: 'keelson-controllers' },
  workloads: { namespace: 'kube-system', name: 'keelson-workload-controllers' },
} as const;

/**
 * A standby takes over at most one lease duration and two attempts after the last renewal: 9 s + 2 * 2.4 s, below the
 * documented 15 s.
 */
const times = { leaseDurationMs: 9_000, renewDeadlineMs: 6_000, retryPeriodMs: 2_000 } as const;

/** What single controllers need beyond {@link ControllerOptions}. */
export interface ControllerCredentials {
  /** Absent: no certificates are issued. */
  readonly signer?: CertificateSigner | undefined;
  /** Absent: namespaces get no service account. */
  readonly serviceAccounts?: { readonly certificateAuthority?: string } | undefined;
}

const makeApiController: Readonly<
  Record<ApiControllerName, (options: ControllerOptions, credentials: ControllerCredentials) => Service | undefined>
> = {
  'certificatesigningrequest-signing-controller': (options, { signer }) =>
    signer && new CertificateController({ ...options, signer }),
  'clusterrole-aggregation-controller': (options) => new ClusterRoleAggregation(options),
  'garbage-collector-controller': (options) => new GarbageCollector(options),
  'namespace-controller': (options) => new NamespaceController(options),
  'pod-garbage-collector-controller': (options) => new PodGarbageCollector(options),
  'serviceaccount-controller': (options, { serviceAccounts }) =>
    serviceAccounts && namespaceDefaults(options, serviceAccounts),
  'token-cleaner-controller': (options) => new BootstrapTokenCleaner(options),
};

function namespaceDefaults(
  options: ControllerOptions,
  { certificateAuthority }: { readonly certificateAuthority?: string },
): Service {
  return new NamespaceDefaults({ ...options, ...(certificateAuthority === undefined ? {} : { certificateAuthority }) });
}

/**
 * Returns the services that run the chosen controllers.
 *
 * @param elected true: several processes may run them, so that one is elected for each of both sets
 */
export function controllerServices(
  { api, workloads, scheduler }: ControllerChoice,
  options: ControllerOptions,
  credentials: ControllerCredentials,
  elected: boolean,
): Service[] {
  const apiServices = () =>
    api.flatMap((name) => {
      const service = makeApiController[name](options, credentials);
      return service === undefined ? [] : [service];
    });
  const workloadServices = () => [
    ...(workloads.length === 0 ? [] : [new ControllerManager({ ...options, controllers: workloads })]),
    ...(scheduler ? [new Scheduler(options)] : []),
  ];
  if (!elected) return [...apiServices(), ...workloadServices()].map((service) => startedInTime(service, options));
  return [
    ...(api.length === 0 ? [] : [electedServices(options, leases.api, apiServices)]),
    ...(workloads.length === 0 && !scheduler ? [] : [electedServices(options, leases.workloads, workloadServices)]),
  ];
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

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Identity of this process in the election. */
function candidateName(): string {
  return `${hostname()}_${randomUUID()}`;
}

/**
 * Runs controllers while this process is the leader. A former leader and its successor may act at the same time for
 * a moment; all deletions contain uid and resourceVersion as preconditions, so nothing is done twice.
 */
function electedServices(
  options: ControllerOptions,
  lease: { readonly namespace: string; readonly name: string },
  makeServices: () => readonly Service[],
): Service {
  const { client, clock, logger } = options;
  const elector = new LeaderElector({
    client,
    ...lease,
    identity: candidateName(),
    lead: (signal) => runWhileLeading(makeServices(), signal, options, logger),
    ...times,
    clock,
    logger,
  });
  return {
    name: `elected ${lease.name}`,
    start: async () => elector.start(),
    stop: () => elector.stop(),
  };
}

async function runWhileLeading(
  services: readonly Service[],
  signal: AbortSignal,
  { clock }: ControllerOptions,
  logger: Logger,
): Promise<void> {
  const host = new ServiceHost(services, clock, logger);
  const started = host.start();
  try {
    await Promise.race([started, aborted(signal)]);
    await aborted(signal);
  } finally {
    // An interrupted start must have ended before its services can be stopped.
    await started.catch(() => {});
    await host.stop();
  }
}
