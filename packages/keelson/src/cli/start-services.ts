import { ApiEventRecorder } from '@keelson/client';
import { type Service, ServiceHost, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import type { ListenAddress, ServerOptions } from '../config/options.ts';
import { defaultIngressListen } from '../config/service-options.ts';
import type { RunningServer } from './serve.ts';

/** What serves the services of `keelson up`. */
export interface LocalServices {
  /** Where Ingresses are served. Undefined: nowhere. */
  readonly ingressUrl: string | undefined;
  /** Ends all connections and frees all addresses. */
  stop(): Promise<void>;
}

/** What they require of the server in the same process. */
export type ServerOfServices = Pick<RunningServer, 'api' | 'metrics' | 'localAgents'>;

/**
 * Serves the cluster addresses and node ports of services, and Ingresses, in this process. An address that cannot be
 * used is logged as a warning, and the rest is served without it.
 */
export async function startServices(
  options: Pick<ServerOptions, 'logLevel' | 'serviceProxy' | 'ingressListen'>,
  { api: client, metrics, localAgents }: ServerOfServices,
): Promise<LocalServices> {
  const logger = createPinoLogger(options.logLevel).child({ component: 'services' });
  if (options.serviceProxy === false) return { ingressUrl: undefined, stop: async () => {} };
  // Loaded on demand, because only this command serves them.
  const { IngressProxy, ServiceProxy, ServiceTable } = await import('@keelson/service-proxy');
  const context = { client, clock: systemClock, logger };
  const events = new ApiEventRecorder({ ...context, qps: 5, burst: 50, source: { component: 'service-proxy' } });
  const table = new ServiceTable(context);
  const proxy = new ServiceProxy({
    ...{ table, events, metrics, ...context },
    localNodes: () => new Set(localAgents.keys()),
  });
  const host = new ServiceHost([table, proxy], systemClock, logger);
  const started: Service[] = [];
  let ingressUrl: string | undefined;
  try {
    await host.start();
    for (const listen of ingressAddresses(options.ingressListen)) {
      const ingress = new IngressProxy({ table, events, listen, ...context });
      try {
        await ingress.start();
        started.push(ingress);
        ingressUrl = `http://${listen.host.includes(':') ? `[${listen.host}]` : listen.host}:${ingress.port}`;
        break;
      } catch (err) {
        await ingress.stop();
        logger.warn('Ingresses cannot be served at this address', { ...listen, err });
      }
    }
  } catch (err) {
    logger.warn('services are not served', { err });
  }
  return {
    ingressUrl,
    async stop() {
      for (const service of started) await service.stop();
      await host.stop();
      await events.stop();
    },
  };
}

/** Without a configured address, a port that the system chooses replaces the default one when that is in use. */
function ingressAddresses(listen: ListenAddress | 'off' | undefined): ListenAddress[] {
  if (listen === 'off') return [];
  return listen === undefined ? [defaultIngressListen, { ...defaultIngressListen, port: 0 }] : [listen];
}
