import { LeaderElector, type LeaderElectorOptions } from '@keelson/client';
import { addAbortListener, removeAbortListener, type Service, ServiceHost } from '@keelson/core/runtime';

/** Options of an election; see `LeaderElector` for the times. */
export interface ElectedOptions extends Omit<LeaderElectorOptions, 'lead'> {
  /** Creates the services for one term, for example a `ControllerManager`. */
  readonly services: () => readonly Service[];
}

/**
 * Runs services while this process is the leader: they are created and started when the Lease was acquired, and stopped
 * when it was lost, or when the returned service stops. A former leader and its successor may act at the same time for
 * a moment, so writes that must not be done twice need preconditions.
 */
export function runElected({ services, ...options }: ElectedOptions): Service {
  const { clock, logger } = options;
  const elector = new LeaderElector({
    ...options,
    lead: async (signal) => {
      const host = new ServiceHost(services(), clock, logger);
      const started = host.start();
      try {
        await Promise.race([started, aborted(signal)]);
        await aborted(signal);
      } finally {
        // An interrupted start must have ended before its services can be stopped.
        await started.catch(() => {});
        await host.stop();
      }
    },
  });
  return { name: 'elected-controllers', start: async () => elector.start(), stop: () => elector.stop() };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let abort = () => {};
  await new Promise<void>((resolve) => {
    abort = resolve;
    addAbortListener(signal, abort);
  });
  removeAbortListener(signal, abort);
}
