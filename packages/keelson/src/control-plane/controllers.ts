import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { LeaderElector } from '@keelson/client';
import {
  CertificateController,
  type CertificateSigner,
  type ControllerOptions,
  GarbageCollector,
  NamespaceController,
  PodGarbageCollector,
} from '@keelson/controllers';
import { type Logger, type Service, ServiceHost } from '@keelson/core';

/** The Lease that the controllers of several servers take turns on. */
export const controllersLease = { namespace: 'kube-system', name: 'keelson-controllers' } as const;

/**
 * A standby takes over at most one lease and two attempts after the leader was last heard of: 9 s + 2 * 2.4 s, below
 * the 15 s that are promised.
 */
const times = { leaseDurationMs: 9_000, renewDeadlineMs: 6_000, retryPeriodMs: 2_000 } as const;

/**
 * The controllers of a plane, made anew for each time they run. Without a signer nobody brings certificate signing
 * requests to an end.
 */
export function builtinControllers(options: ControllerOptions, signer: CertificateSigner | undefined): Service[] {
  return [
    new GarbageCollector(options),
    new NamespaceController(options),
    new PodGarbageCollector(options),
    ...(signer === undefined ? [] : [new CertificateController({ ...options, signer })]),
  ];
}

/** Longest time for which the API waits for a controller. */
const startPatienceMs = 3_000;

/**
 * A controller for which the start of the server waits only a moment: one that cannot read what it follows, because of
 * a damaged object for instance, goes on trying while the API is served.
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
        cancel = clock.after(startPatienceMs, () => resolve('late'));
      });
      const outcome = await Promise.race([starting, late]).finally(() => cancel());
      if (outcome !== 'late') return;
      const component = service.name;
      logger.warn('a controller has not started yet; the API is served without it', { component });
      starting.then(
        () => logger.info('the controller has started', { component }),
        (err: unknown) => logger.error('the controller could not be started', { component, err }),
      );
    },
    stop: () => service.stop(),
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Who this process is among the candidates. */
function candidateName(): string {
  return `${hostname()}_${randomUUID()}`;
}

/**
 * Runs the controllers while this server leads. Between a leader that lost its lease and its successor both may act for
 * a moment; every deletion they make names the uid and version it is about, so nothing is done twice.
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
    // A start that was interrupted must have come to its end before it can be undone.
    await started.catch(() => {});
    await host.stop();
  }
}
