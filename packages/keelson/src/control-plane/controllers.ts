import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { BootstrapTokenCleaner } from '@keelson/access';
import { LeaderElector } from '@keelson/client';
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

/** The Lease by which one of several servers is elected to run the controllers. */
export const controllersLease = { namespace: 'kube-system', name: 'keelson-controllers' } as const;

/**
 * A standby takes over at most one lease duration and two attempts after the last renewal: 9 s + 2 * 2.4 s, below the
 * documented 15 s.
 */
const times = { leaseDurationMs: 9_000, renewDeadlineMs: 6_000, retryPeriodMs: 2_000 } as const;

/**
 * Creates the controllers of a plane, for each time they run. Without a signer no certificates are issued; without
 * service accounts namespaces get none.
 */
export function builtinControllers(
  options: ControllerOptions,
  signer: CertificateSigner | undefined,
  serviceAccounts: { readonly certificateAuthority?: string } | undefined,
): Service[] {
  return [
    new GarbageCollector(options),
    new NamespaceController(options),
    new PodGarbageCollector(options),
    new ClusterRoleAggregation(options),
    new BootstrapTokenCleaner(options),
    ...(signer === undefined ? [] : [new CertificateController({ ...options, signer })]),
    ...(serviceAccounts === undefined ? [] : [namespaceDefaults(options, serviceAccounts)]),
  ];
}

function namespaceDefaults(
  options: ControllerOptions,
  { certificateAuthority }: { readonly certificateAuthority?: string },
): Service {
  return new NamespaceDefaults({ ...options, ...(certificateAuthority === undefined ? {} : { certificateAuthority }) });
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
 * Runs the controllers while this server is the leader. A former leader and its successor may act at the same time for
 * a moment; all deletions contain uid and resourceVersion as preconditions, so nothing is done twice.
 */
export function electedControllers(options: ControllerOptions, makeServices: () => readonly Service[]): Service {
  const { client, clock, logger } = options;
  const elector = new LeaderElector({
    client,
    ...controllersLease,
    identity: candidateName(),
    lead: (signal) => runWhileLeading(makeServices(), signal, options, logger),
    ...times,
    clock,
    logger,
  });
  return {
    name: 'elected-controllers',
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
