import { ApiEventRecorder } from '@keelson/client';
import { type Service, ServiceHost, systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import type { ListenAddress, ServerOptions } from '../config/options.ts';
import { defaultIngressListen } from '../config/service-options.ts';
import { clusterDnsAddress } from '../service-addresses/address-range.ts';
import type { RunningServer } from './serve.ts';

/** The proxy, the Ingress controller and the DNS server of `keelson up`. */
export interface LocalServices {
  /** URL at which Ingresses are served. Undefined: they are not served. */
  readonly ingressUrl: string | undefined;
  /** The DNS server for pods. Undefined: pods use the servers of the machine. */
  readonly dns: ClusterDns | undefined;
  /** Ends all connections and frees all addresses. */
  stop(): Promise<void>;
}

/** A DNS server on port 53, so that a resolver can be configured to use it. */
export interface ClusterDns {
  readonly address: string;
  readonly domain: string;
}

/** What the proxy, the Ingress controller and the DNS server require of the server in the same process. */
export type ServerOfServices = Pick<RunningServer, 'api' | 'metrics' | 'localAgents'>;

/**
 * Serves the cluster addresses and node ports of services, and Ingresses, in this process. An address that cannot be
 * used is logged as a warning, and the rest is served without it.
 */
export async function startServices(
  options: Pick<
    ServerOptions,
    'logLevel' | 'serviceProxy' | 'ingressListen' | 'clusterDnsListen' | 'clusterDomain' | 'serviceClusterIpRange'
  >,
  { api: client, metrics, localAgents }: ServerOfServices,
): Promise<LocalServices> {
  const logger = createPinoLogger(options.logLevel).child({ component: 'services' });
  if (options.serviceProxy === false) return { ingressUrl: undefined, dns: undefined, stop: async () => {} };
  // Loaded on demand, because only this command serves them.
  const { DnsServer, IngressProxy, ServiceProxy, ServiceTable } = await import('@keelson/service-proxy');
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
  let dns: ClusterDns | undefined;
  try {
    await host.start();
    const { clusterDnsListen, clusterDomain: domain } = options;
    if (clusterDnsListen !== 'off') {
      const listen = clusterDnsListen ?? { host: clusterDnsAddress(options.serviceClusterIpRange), port: 53 };
      const server = new DnsServer({ table, domain, listen, ...context });
      try {
        await server.start();
        started.push(server);
        if (listen.port === 53) dns = { address: listen.host, domain };
      } catch (err) {
        await server.stop();
        // Port 53, the default, needs privileges, and another cluster of the machine may use it.
        const level = clusterDnsListen === undefined ? 'info' : 'warn';
        logger[level]('names of services cannot be served; pods find services by variables', { ...listen, err });
      }
    }
    for (const listen of ingressAddresses(options.ingressListen)) {
      const ingress = new IngressProxy({ table, events, listen, ...context });
      try {
        await ingress.start();
        started.push(ingress);
        ingressUrl = `http://${listen.host.includes(':') ? `[${listen.host}]` : listen.host}:${ingress.port}`;
        break;
      } catch (err) {
        await ingress.stop();
        // The default port is often in use; the system then chooses another one.
        const replaced = options.ingressListen === undefined && listen.port !== 0;
        logger[replaced ? 'debug' : 'warn']('Ingresses cannot be served at this address', { ...listen, err });
      }
    }
  } catch (err) {
    logger.warn('services are not served', { err });
  }
  return {
    ingressUrl,
    dns,
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
